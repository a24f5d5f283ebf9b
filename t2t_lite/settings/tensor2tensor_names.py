"""Names of tensor2tensor that do not exist here, with what to use instead: for error messages and tables of the docs.

Each answer is one or two sentences. `make docs` writes them into docs/coming_from_tensor2tensor.md.
"""

import fnmatch

from t2t_lite.errors import UserError

# Hyperparameters of tensor2tensor's Transformer sets (`basic_1` in layers/common_hparams.py; models/transformer.py):
# names, which may end in *, the value in tensor2tensor, and the answer.
HPARAMS = (
    ("learning_rate learning_rate_decay_scheme", '0.1, "noam"', "Set `learning_rate_constant` to 10 times "
     "tensor2tensor's `learning_rate`, and `learning_rate_schedule` to a product of factors. The schedule \"legacy\" "
     "is 5000 · 0.002 · `learning_rate` times the paper's formula for the next step. tensor2tensor's parsing sets "
     "set 0.05 but do not use it, because they derive from version 3."),
    ("learning_rate_cosine_cycle_steps learning_rate_minimum", "250000, None",
     'They belong to the schedule "legacy". The cosine factors of `learning_rate_schedule` use '
     "`learning_rate_decay_steps`."),
    ("optimizer_momentum_* optimizer_zero_grads", "",
     'The optimizers are Adam, LAMB, Adafactor, SGD and "multistep_adam", which is Adam with gradient accumulation: a '
     'step is one update, but one batch in tensor2tensor. Its "adam" is LazyAdam, which does not update the moments of '
     "ids that are missing from a batch; here all are updated."),
    ("grad_noise_scale weight_noise symbol_dropout", "0",
     "It is always 0, as in tensor2tensor's Transformer sets."),
    ("dropout", "0.2", "It belongs to other models; the Transformer uses `layer_prepostprocess_dropout`."),
    ("layer_prepostprocess_dropout_broadcast_dims attention_dropout_broadcast_dims relu_dropout_broadcast_dims", '""',
     "Dropout masks are never shared along an axis."),
    ("conv_first_kernel", "3", "There are no convolutions: `ffn_layer` is dense_relu_dense or local_moe."),
    ("moe_num_experts moe_k moe_loss_coef", "16, 2, 1e-3",
     "It belongs to mixtures of experts: set `ffn_layer` to local_moe, too."),
    ("moe_hidden_sizes moe_overhead_train moe_overhead_eval", '"2048", 1.0, 2.0',
     "Experts have one inner layer, of `filter_size`, and no capacity."),
    ("layer_types default_ff default_att", '"", "fc", "a"',
     "`ffn_layer` and `self_attention_type` name several kinds, a/b, which take turns over the layers."),
    ("parameter_attention_key_channels parameter_attention_value_channels hard_attention_k gumbel_noise_weight", "0",
     "There is no attention of this kind; see `self_attention_type`."),
    ("expected_attention_loss_type expected_attention_loss_multiplier", '"kl_divergence", 1.0',
     "There is no loss on attention weights."),
    ("attention_variables_3d use_pad_remover", "False, True", "It only changes how the same result is computed."),
    ("proximity_bias unidirectional_encoder unconditional", "False, False, True",
     "It does not exist here: the encoder sees all positions equally, and the problem says whether there are inputs."),
    ("causal_decoder_self_attention", "True", "It is always True: the decoder sees only earlier positions."),
    ("position_features", '""', 'Positions are always counted (`pos` has no "timing_from_features").'),
    ("norm_type", '"layer"',
     "It always has the value of tensor2tensor's Transformer sets."),
    ("shared_embedding", "False", "`shared_embedding_and_softmax_weights` ties all three matrices or none. With two "
     "vocabularies it ties those of targets and softmax."),
    ("symbol_modality_num_shards vocab_divisor factored_logits", "16, 1, False",
     "Each embedding is one matrix with as many rows as the vocabulary has ids."),
    ("batch_shuffle_size min_length_bucket length_bucket_step use_fixed_batch_size", "512, 8, 1.1, False",
     "Examples are sorted in a large pool and batched without buckets; `batch_size` counts tokens."),
    ("max_input_seq_length max_target_seq_length eval_drop_long_sequences", "0, 0, False",
     "`max_length` drops longer training examples, or cuts them, where a class or a tag goes with a text."),
    ("pack_dataset prepend_mode split_to_length split_targets_*", "off",
     "There is one example per row; language models read inputs and targets as one."),
    ("scheduled_sampling_*", "probability 0", "Training is by teacher forcing."),
    ("sampling_method sampling_temp sampling_keep_top_k", '"argmax", 1.0, -1',
     "It is a decoding option, not a model's: `--decode_hparams=sampling_method=random,sampling_temp=1.0`."),
    ("eval_run_autoregressive", "False", "Each evaluation translates `eval_decode_examples` dev sentences."),
    ("activation_dtype weight_dtype gpu_automatic_mixed_precision", '"float32", "float32", False',
     "`dtype_policy=mixed_bfloat16` and `dtype_policy=mixed_float16` compute in these types, with weights in float32."),
    ("mixed_precision_optimizer_loss_scaler", '"exponential"',
     "`dtype_policy=mixed_float16` always scales its loss; `loss_scale_growth_steps` good steps double the scale."),
    ("pretrained_model_dir warm_start_from_second", '""', "`--warm_start_from` starts from the weights of one run."),
    ("nbr_decoder_problems overload_eval_metric_name multiproblem_*", '1, ""', "There is one problem per model."),
    ("mix_with_transformer num_mixedin_layers add_or_concat_timing_signal add_sru transformer_ffn_type "
     "transform_bias_init couple_carry_transform_gates depth_embedding dwa_elements gate_ffn_layer lstm_forget_bias "
     "use_memory_as_final_state add_ffn_unit_to_the_transition_function", "of Universal Transformers",
     'They have no layers beside the repeated ones, no gates and no convolutions: recurrence_type is "basic" or '
     '"act", and signals are added.'),
    ("memory_type num_memory_items recurrent_memory_batch_size", '"transformer_xl"', "There is no recurrent memory."),
    ("summarize_grads summarize_vars daisy_chain_variables no_data_parallelism force_full_predict use_custom_ops "
     "tpu_enable_host_call pad_batch mlperf_mode", "", "It belongs to the machinery of TensorFlow 1 or of TPUs."),
    ("kernel_height kernel_width compress_steps area_* num_area_layers max_area_* memory_height video_* bottom "
     "loss name top weights_fn", "", "It belongs to other models or to modalities."),
)  # fmt: skip

# Metrics of its evaluations (utils/metrics.py) and those here; neg_log_perplexity is the loss times -1.
METRICS = {
    "accuracy": "token_accuracy",
    "accuracy_per_sequence": "exact_sequence_accuracy",
    "approx_bleu_score": "bleu",
    "neg_log_perplexity": "loss",
}

# Options of tensor2tensor's --decode_hparams (utils/decoding.py) that exist here, too.
DECODING = (
    "alpha", "batch_size", "beam_size", "delimiter", "extra_length", "identity_output", "log_results", "max_input_size",
    "num_decodes", "num_samples", "return_beams", "shard_google_format", "shard_id", "shards", "shards_start_offset",
    "write_beam_scores",
)  # fmt: skip

_TPU = "TPUs are not supported"
_GRAPH = "it controlled TensorFlow 1's graphs and sessions"
_SERVERS = "there are no parameter servers; TF_CONFIG sets up workers"
_CLOUD = "there is no launcher for Google Cloud ML Engine"
# Flags that every trainer, decoder and exporter accepts with a warning: the switches, then those with a value.
TF1_SWITCHES = {
    "cloud_mlengine": _CLOUD,
    "disable_grappler_optimizations": _GRAPH,
    "enable_graph_rewriter": "TensorFlow 2 rewrites its graphs by itself",
    "log_device_placement": "the log names the devices; in Python, call tf.debugging.set_log_device_placement(True)",
    "optionally_use_dist_strat": "--worker_gpu=N always uses MirroredStrategy",
    "sync": _SERVERS,
    "tfdbg": "a step that is not finite is skipped and its batches are kept; in Python, call "
    "tf.debugging.enable_check_numerics()",
    "use_guarantee_const_getter": _TPU,
    "use_tpu": _TPU,
    "use_tpu_estimator": _TPU,
    "xla_compile": "it is a flag of t2t-trainer; decoding is always compiled",
}
TF1_VALUES = {
    "cloud_mlengine_master_type": _CLOUD,
    "cloud_tpu_name": _TPU,
    "export_saved_model_api_version": _TPU,
    "gpu_order": "set CUDA_VISIBLE_DEVICES to order GPUs",
    "iterations_per_loop": _TPU,
    "job_dir": _CLOUD,
    "master": _SERVERS,
    "ps_gpu": _SERVERS,
    "ps_job": _SERVERS,
    "ps_replicas": _SERVERS,
    "std_server_protocol": _SERVERS,
    "tpu_infeed_sleep_secs": _TPU,
    "tpu_job_name": _TPU,
    "tpu_num_shards": _TPU,
    "worker_gpu_memory_fraction": "GPU memory is allocated as needed",
    "worker_id": _SERVERS,
    "worker_job": _SERVERS,
    "worker_replicas": _SERVERS,
    "xla_jit_level": _GRAPH,
}

# Flags of tensor2tensor's commands and modules, also of older versions, that are errors here: names and the answer.
FLAGS = (
    ("problems", "It comes from older versions of tensor2tensor; use `--problem`."),
    ("hparams_overrides hparams_override", "Use `--hparams=name=value,…`, or `--hp_name=value` in t2t-trainer."),
    ("model_dir", "Use `--output_dir`, the folder of the run."),
    ("save_checkpoints_steps", "Use `--local_eval_frequency`: the number of steps between checkpoints, which are also "
     "evaluated."),
    ("locally_shard_to_cpu", "Use `--logical_cpus=N`."),
    ("daisy_chain_variables", "It belongs to the machinery of TensorFlow 1."),
    ("decode_use_last_position_only", "Decoding always uses a cache and computes only the last position."),
    ("decode_timeout_mins", "t2t-decoder does not wait for checkpoints; use t2t-translate-all with `--wait_minutes`."),
    ("env_problem_max_env_steps env_problem_batch_size", "There is no reinforcement learning."),
    ("parsing_path", "Use `--problem=parsing_english_own` with `--train_files`."),
    ("timit_paths", "There are no audio problems."),
    ("checkpoints num_last_checkpoints prefix output_path",
     "t2t-avg-all averages checkpoints: `t2t-avg-all --model_dir=RUN --n=8`."),
    ("output_filename corpus_filepattern vocab_filepattern min_count corpus_max_lines num_iterations split_on_newlines",
     "t2t-datagen makes vocabularies; use `--vocab_size`."),
    ("decodes_filename targets_filename", "There is no ROUGE; t2t-bleu scores BLEU, chrF and TER."),
    ("attack_params_set surrogate_attack surrogate_model surrogate_hparams_set surrogate_output_dir ignore_incorrect",
     "There are no adversarial attacks."),
    ("pruning_params_set", "There is no pruning."),
    ("skip_teacher_training teacher_dir student_dir", "There is no command for distillation."),
    ("configuration", "Use `--output_dir`: t2t-insights-server shows several runs, joined by commas, side by side."),
    ("static_path", "t2t-insights-server has its page in the package."),
)  # fmt: skip
# Modules that users' folders import, and that `t2t_lite.extras.tensor2tensor` does not have.
_MODULES = {
    "common_attention": "there is t2t_lite.layers.MultiHeadAttention",
    "common_layers": "layers are Keras layers, see t2t_lite.layers",
    "modalities": "there are no modalities",
    "modality": "there are no modalities",
    "metrics": "a problem's eval_metrics are names, and t2t_lite.registry.register_metric adds others",
    "t2t_model": "a model is a Keras model, see docs/keras.md",
}
# Settings of a run that are flags but that users look for among the hyperparameters.
_NO_HPARAMS = ("data_dir", "eval_steps", "model", "output_dir", "problem", "schedule", "train_steps", "worker_gpu")


def hparam_answer(name):
    """Returns one line of advice on a hyperparameter that is not declared, or "" if it is not tensor2tensor's."""
    for names, _, answer in HPARAMS:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in names.split()):
            return _plain(answer)
    if name in DECODING:
        return f"It is a decoding option, not a model's: --decode_hparams={name}=VALUE."
    return f"It is a flag: --{name}=VALUE." if name in _NO_HPARAMS else ""


def flag_answer(name):
    """Returns one line of advice on a flag that no command declares, or "" if it is not tensor2tensor's."""
    for names, answer in FLAGS:
        if name in names.split():
            return _plain(answer)
    reason = {**TF1_SWITCHES, **TF1_VALUES}.get(name)
    return f"It has no meaning here: {reason}." if reason else ""


def module_answer(name):
    """Returns what to use instead of a module of tensor2tensor, one line without a full stop."""
    instead = f": {_MODULES[name]}" if name in _MODULES else ""
    return f"tensor2tensor's {name} is not here{instead}. docs/coming_from_tensor2tensor.md has a table of imports"


def _plain(answer):
    return answer.replace("`", "")


def without_multistep(hparams):
    """Returns the hyperparameters with tensor2tensor's multi-step Adam expressed as Adam with accumulation.

    `optimizer=multistep_adam,optimizer_multistep_accumulate_steps=n` is Adam with `gradient_accumulation_steps=n`.
    tensor2tensor averages the gradients of n batches, whatever their numbers of tokens, and counts n steps. Here the
    n batches are one step, and each token has the same weight.

    Raises:
        UserError: the two settings give different numbers of batches.
    """
    if hparams.optimizer != "multistep_adam":
        return hparams
    steps, accumulation = hparams.optimizer_multistep_accumulate_steps, hparams.gradient_accumulation_steps
    if steps > 1 and accumulation not in (1, steps):
        raise UserError(
            f"optimizer_multistep_accumulate_steps={steps}, gradient_accumulation_steps={accumulation}: both set the "
            "number of batches per step. Expected one of them."
        )
    return hparams.override_from_dict(
        {
            "optimizer": "adam",
            "gradient_accumulation_steps": max(steps, accumulation),
            "optimizer_multistep_accumulate_steps": 0,
        }
    )
