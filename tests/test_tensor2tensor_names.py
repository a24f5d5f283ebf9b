"""Everything that tensor2tensor's Transformer sets and commands can be told is taken here, or answered."""

import importlib
import pathlib
import re

import pytest

from t2t_lite import registry, tensor2tensor_names
from t2t_lite.bin import t2t_decoder, t2t_exporter, t2t_trainer
from t2t_lite.config import HParams
from t2t_lite.decoding.jobs.decode_hparams import DecodeHParams, decode_settings
from t2t_lite.errors import UserError
from t2t_lite.flags import Flags


def words(text):
    return text.split()


# tensor2tensor 1.15.7: basic_1 in layers/common_hparams.py, transformer_base_v1 and the sets derived from it.
THEIR_HPARAMS = words("""
batch_size batch_shuffle_size use_fixed_batch_size num_hidden_layers kernel_height kernel_width hidden_size
compress_steps dropout clip_grad_norm grad_noise_scale summarize_grads mlperf_mode summarize_vars initializer
initializer_gain label_smoothing optimizer optimizer_adam_epsilon optimizer_adam_beta1 optimizer_adam_beta2
optimizer_momentum_momentum optimizer_momentum_nesterov optimizer_adafactor_beta1 optimizer_adafactor_beta2
optimizer_adafactor_factored optimizer_adafactor_decay_type optimizer_adafactor_memory_exponent
optimizer_adafactor_clipping_threshold optimizer_adafactor_multiply_by_parameter_scale
optimizer_multistep_accumulate_steps mixed_precision_optimizer_loss_scaler mixed_precision_optimizer_init_loss_scale
optimizer_zero_grads weight_decay weight_noise learning_rate_schedule learning_rate_constant
learning_rate_decay_scheme learning_rate_decay_steps learning_rate_decay_staircase learning_rate_minimum
learning_rate_decay_rate learning_rate_warmup_steps learning_rate_cosine_cycle_steps learning_rate sampling_method
sampling_temp sampling_keep_top_k factored_logits multiply_embedding_mode moe_hidden_sizes moe_num_experts moe_k
moe_loss_coef layer_preprocess_sequence layer_postprocess_sequence layer_prepostprocess_dropout
layer_prepostprocess_dropout_broadcast_dims symbol_dropout norm_type norm_epsilon vocab_divisor min_length max_length
pack_dataset use_custom_ops split_targets_chunk_length split_targets_max_chunks split_targets_strided_training
min_length_bucket length_bucket_step eval_drop_long_sequences eval_run_autoregressive
shared_embedding_and_softmax_weights shared_embedding symbol_modality_num_shards bottom loss name top weights_fn
max_input_seq_length max_target_seq_length split_to_length video_num_input_frames video_num_target_frames prepend_mode
scheduled_sampling_prob scheduled_sampling_method scheduled_sampling_warmup_steps scheduled_sampling_gold_mixin_prob
scheduled_sampling_num_passes scheduled_sampling_warmup_schedule daisy_chain_variables force_full_predict
no_data_parallelism activation_dtype weight_dtype pretrained_model_dir multiproblem_schedule_threshold
multiproblem_per_task_threshold multiproblem_schedule_max_examples multiproblem_mixing_schedule
multiproblem_reweight_label_loss multiproblem_label_weight max_relative_position heads_share_relative_embedding
add_relative_to_values tpu_enable_host_call pad_batch multiproblem_target_eval_only multiproblem_vocab_size
multiproblem_max_input_length multiproblem_max_target_length multiproblem_fixed_train_length warm_start_from_second
area_value_mode area_key_mode num_area_layers max_area_width max_area_height memory_height
gpu_automatic_mixed_precision filter_size num_encoder_layers num_decoder_layers num_heads attention_key_channels
attention_value_channels ffn_layer parameter_attention_key_channels parameter_attention_value_channels
attention_dropout attention_dropout_broadcast_dims relu_dropout relu_dropout_broadcast_dims pos position_features
nbr_decoder_problems proximity_bias causal_decoder_self_attention use_pad_remover self_attention_type
conv_first_kernel attention_variables_3d use_target_space_embedding moe_overhead_train moe_overhead_eval
hard_attention_k gumbel_noise_weight overload_eval_metric_name unidirectional_encoder expected_attention_loss_type
expected_attention_loss_multiplier memory_type num_memory_items recurrent_memory_batch_size unconditional
""")

# utils/flags.py and bin/t2t_trainer.py, which the trainer, decoder, exporter and t2t-eval have; then each one's own.
SHARED = words("""
registry_help tfdbg export_saved_model dbgprofile model hparams_set hparams_range hparams problem data_dir train_steps
eval_early_stopping_metric eval_early_stopping_metric_delta eval_early_stopping_steps
eval_early_stopping_metric_minimize eval_timeout_mins eval_run_autoregressive eval_use_test_set keep_checkpoint_max
enable_graph_rewriter keep_checkpoint_every_n_hours save_checkpoints_secs log_device_placement warm_start_from
local_eval_frequency eval_throttle_seconds sync worker_job worker_gpu worker_replicas worker_id
worker_gpu_memory_fraction ps_gpu gpu_order ps_job ps_replicas decode_hparams decode_from_file decode_to_file
decode_reference t2t_usr_dir random_seed tpu_num_shards tpu_job_name iterations_per_loop use_tpu use_tpu_estimator
export_saved_model_api_version use_guarantee_const_getter xla_compile xla_jit_level tpu_infeed_sleep_secs
generate_data tmp_dir profile inter_op_parallelism_threads intra_op_parallelism_threads optionally_use_dist_strat
master output_dir schedule eval_steps std_server_protocol cloud_tpu_name cloud_mlengine cloud_mlengine_master_type
autotune_objective autotune_maximize autotune_max_trials autotune_parallel_trials job-dir log_step_count_steps
gpu_automatic_mixed_precision
""")
THEIR_FLAGS = {
    "t2t_trainer": SHARED,
    "t2t_eval": SHARED,
    "t2t_decoder": [*SHARED, "checkpoint_path", "keep_timestamp", "decode_interactive", "decode_shards", "score_file",
                    "decode_in_memory", "disable_grappler_optimizations"],
    "t2t_exporter": [*SHARED, "export_as_tfhub", "export_dir", "checkpoint_path", "as_text"],
    "t2t_datagen": words(
        """data_dir tmp_dir problem exclude_problems num_shards max_cases env_problem_max_env_steps only_list
        env_problem_batch_size random_seed task_id task_id_start task_id_end
        num_concurrent_processes t2t_usr_dir  parsing_path timit_paths"""),
    "t2t_query_server": words("""server servable_name problem data_dir t2t_usr_dir inputs_once timeout_secs
        cloud_mlengine_model_name cloud_mlengine_model_version"""),
    "t2t_avg_all": words("""model_dir output_dir n min_steps wait_minutes"""),
    "t2t_translate_all": words(
        """decoder_command model_dir source translations_dir min_steps wait_minutes beam_size alpha model
        t2t_usr_dir data_dir problem hparams_set"""),
    "t2t_bleu": words("""source reference translation translations_dir event_dir bleu_variant tag_suffix min_steps
        wait_minutes  report_zero"""),
    "t2t_make_tf_configs": ["masters", "ps"],
}  # fmt: skip


@pytest.mark.parametrize("name", THEIR_HPARAMS)
def test_hyperparameters(name):
    if name in HParams():
        return
    answer = tensor2tensor_names.hparam_answer(name)
    assert answer.endswith(".") and "`" not in answer
    with pytest.raises(UserError, match=re.escape(f"--hparams: '{name}' is not a hyperparameter. {answer}")):
        registry.hparams("transformer_base").parse(f"{name}=1")
    with pytest.raises(UserError, match=re.escape(answer)):
        registry.hparams("transformer_base").set_hparam(name, 1)


def test_the_tables_name_nothing_that_is_here():
    named = [name for names, _, _ in tensor2tensor_names.HPARAMS for name in names.split()]
    assert not [name for name in named if name in HParams()]
    assert len({*named}) == len(named)
    assert {*tensor2tensor_names.DECODING} <= {*decode_settings()}


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, names in THEIR_FLAGS.items() for name in names]
)
def test_flags(command, name, capsys):
    module = importlib.import_module(f"t2t_lite.bin.{command}")
    flags = Flags()
    module.define_flags(flags)
    if name.replace("-", "_") in flags:
        return
    assert module.main([f"--{name}=1"]) == 2
    error = capsys.readouterr().err
    assert f"--{name}: unknown flag. " in error and "Nearest" not in error and error.endswith(".\n")


@pytest.mark.parametrize(
    ("command", "word", "answer"),
    [
        (t2t_decoder, "--beam_size=4", "--decode_hparams=beam_size=VALUE"),
        (t2t_decoder, "--decode_beam_size=4", "--decode_hparams=beam_size=VALUE"),
        (t2t_decoder, "--decode-alpha=1", "--decode_hparams=alpha=VALUE"),
        (t2t_trainer, "--decode_extra_length=9", "--decode_hparams=extra_length=VALUE"),
        (t2t_exporter, "--beam_size=4", "--decode_hparams=beam_size=VALUE"),
        (t2t_trainer, "--batch_size=9", "--hparams=batch_size=VALUE"),
        (t2t_trainer, "--num_heads=9", "--hparams=num_heads=VALUE"),
        (t2t_trainer, "--learning_rate=1", "Set learning_rate_constant to 10 times"),
        (t2t_trainer, "--dropout=0.1", "layer_prepostprocess_dropout"),
        (t2t_trainer, "--problems=a", "use --problem."),
        (t2t_trainer, "--hparams_overrides=a=1", "--hparams=name=value"),
        (t2t_trainer, "--checkpoint_path=a", ", t2t-decoder, "),
        (t2t_decoder, "--train_steps=9", "a flag of t2t-trainer; leave it out"),
        (t2t_decoder, "--checkpoint_pth=a", "Nearest: --checkpoint_path"),
        (t2t_decoder, "checkpoint_path=a", "Nearest: --checkpoint_path"),
    ],
)
def test_flags_that_are_set_elsewhere(command, word, answer, capsys):
    assert command.main([word]) == 2
    error = capsys.readouterr().err
    assert answer in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("decode_beam_size=4", "Here it is beam_size."),
        ("decode_to_file=x", "It is a flag: --decode_to_file=FILE."),
        ("num_heads=4", "--hparams=num_heads=VALUE"),
        ("learning_rate=4", "learning_rate_constant"),
    ],
)
def test_settings_of_decoding(text, answer):
    with pytest.raises(UserError, match=re.escape(answer)):
        DecodeHParams.parse(text)


@pytest.mark.parametrize(
    ("text", "answer"), [("beam_size=4", "--decode_hparams=beam_size"), ("train_steps=4", "flag: --train_steps")]
)
def test_hyperparameters_that_are_set_elsewhere(text, answer):
    with pytest.raises(UserError, match=answer):
        HParams().parse(text)


def test_imports_beside_the_old_ones_work():
    page = (pathlib.Path(__file__).parents[1] / "docs/coming_from_tensor2tensor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(from tensor2tensor\.[^`]*)` \| `([^`]*)` \|$", page, re.MULTILINE)
    assert len(rows) >= 20
    for _, new in rows:
        assert "t2t_lite" in new
        exec(new, {})
    old = " ".join(old for old, _ in rows)
    for module in ("utils import registry", "data_generators import problem", "data_generators import text_problems",
                   "common_hparams", "models import transformer", "utils.hparam ", "utils import metrics"):  # fmt: skip
        assert module in old
