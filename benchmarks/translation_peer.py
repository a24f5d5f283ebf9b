"""Trains a peer of a translation run: Hugging Face's M2M100 with the same sizes, in a plain PyTorch loop.

python benchmarks/translation_peer.py --train=train.en.gz,train.de.gz --vocabulary=data/vocab.translate_own.8000.model \
  --steps=1200 --dropout=0.2 --weights=peer.pt --source=test.en.gz --output=test.peer.de --alpha=1.0

M2M100 is the pre-norm Transformer with sinusoids that t2t_lite trains by default. The peer uses the same pieces, label
smoothing and optimizer (Adam), and the same learning rate at each step. Its batches have the same number of tokens and
are made of examples of similar length, shuffled in each pass. The peer decodes with `generate` and a beam of 4.
M2M100's length penalty is not the same function as t2t_lite's, so alpha should be selected on the dev set for both. If
the command is repeated with other sentences or a different alpha, it reuses the trained weights. The script prints the
training loss (which includes label smoothing; subtract its entropy, 1.224 nats for 8,000 pieces, to compare it with
t2t-trainer's objective), target tokens per second, the seconds of training, and the loss on --dev.
"""

import argparse
import os
import random
import sys
import time

import sentencepiece
import torch
import torch.nn.functional as F
from transformers import GenerationConfig, M2M100Config, M2M100ForConditionalGeneration

from t2t_lite.corpora.plain_text import read_lines
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID


def parser():
    """Returns the ArgumentParser."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--train", required=True, help="source,target: two aligned files, plain or gzip")
    flags.add_argument("--vocabulary", required=True, help="the SentencePiece model of t2t-datagen")
    flags.add_argument("--dev", default="", help="source,target: files to compute the loss on (nats per token)")
    flags.add_argument("--source", required=True, help="sentences to translate after training")
    flags.add_argument("--output", required=True, help="file for the translations")
    flags.add_argument("--weights", required=True, help="file for the trained weights; loaded if it exists")
    flags.add_argument("--steps", type=int, default=1200)
    flags.add_argument("--batch_size", type=int, default=4096, help="number of rows x length of the longest side")
    flags.add_argument("--hidden_size", type=int, default=128)
    flags.add_argument("--filter_size", type=int, default=256)
    flags.add_argument("--layers", type=int, default=4)
    flags.add_argument("--heads", type=int, default=4)
    flags.add_argument("--dropout", type=float, default=0.3, help="dropout of layer outputs; inside layers it is 0.1")
    flags.add_argument("--warmup_steps", type=int, default=800)
    flags.add_argument("--decay_steps", type=int, default=0, help="number of final steps in which the rate falls to 0")
    flags.add_argument("--learning_rate_constant", type=float, default=2.0)
    flags.add_argument("--beam_size", type=int, default=4)
    flags.add_argument("--alpha", type=float, default=0.6, help="generate's length_penalty")
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--threads", type=int, default=0, help="0: PyTorch's default")
    return flags


def batches(examples, batch_size, draw):
    """Yields batches endlessly. Each pass sorts examples by length, breaks ties randomly, and shuffles the batches."""
    while True:
        groups, widest = [[]], 0
        for pair in sorted(examples, key=lambda pair: (max(map(len, pair)), len(pair[0]), draw.random())):
            widest = max(widest, *map(len, pair))
            if (len(groups[-1]) + 1) * widest > batch_size:
                groups.append([])
                widest = max(map(len, pair))
            groups[-1].append(pair)
        draw.shuffle(groups)
        yield from groups


def read_examples(paths, pieces):
    """Reads "source,target" files; returns a list of (source ids, target ids), in which all ids end in EOS."""
    texts = [read_lines(path) for path in paths.split(",")]
    return [tuple([*pieces.encode(text), EOS_ID] for text in pair) for pair in zip(*texts, strict=True)]


def padded(rows):
    """Pads lists of ids to a tensor, int64 [rows, longest]."""
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD_ID)


def new_model(flags, vocab_size):
    """Creates the model, in training mode."""
    config = M2M100Config(
        vocab_size=vocab_size, d_model=flags.hidden_size, encoder_layers=flags.layers, decoder_layers=flags.layers,
        encoder_ffn_dim=flags.filter_size, decoder_ffn_dim=flags.filter_size, encoder_attention_heads=flags.heads,
        decoder_attention_heads=flags.heads, activation_function="relu", dropout=flags.dropout, attention_dropout=0.1,
        activation_dropout=0.1, encoder_layerdrop=0.0, decoder_layerdrop=0.0, scale_embedding=True,
        init_std=flags.hidden_size**-0.5, pad_token_id=PAD_ID, bos_token_id=EOS_ID, eos_token_id=EOS_ID,
        decoder_start_token_id=EOS_ID, max_position_embeddings=512,
    )  # fmt: skip
    return M2M100ForConditionalGeneration(config).train()


def objective(model, sources, targets, label_smoothing):
    """Returns (mean cross-entropy in nats per target token, number of target tokens) of a batch."""
    sources, targets = padded(sources), padded(targets)
    logits = model(
        input_ids=sources, attention_mask=(sources != PAD_ID).long(), use_cache=False,
        decoder_input_ids=F.pad(targets, (1, 0), value=EOS_ID)[:, :-1],
    ).logits.flatten(0, 1)  # fmt: skip
    loss = F.cross_entropy(logits, targets.flatten(), ignore_index=PAD_ID, label_smoothing=label_smoothing)
    return loss, int((targets != PAD_ID).sum())


@torch.inference_mode()
def dev_loss(model, examples, batch_size=64):
    """Returns the mean loss over examples, without label smoothing, in nats per target token."""
    model.eval()
    parts = [zip(*examples[at : at + batch_size], strict=True) for at in range(0, len(examples), batch_size)]
    losses = [objective(model, *part, label_smoothing=0.0) for part in parts]
    return sum(float(loss) * count for loss, count in losses) / sum(count for _, count in losses)


def train(model, examples, flags):
    """Trains the model for `flags.steps` updates, and prints progress."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.997), eps=1e-9, fused=True)
    factor = lambda step: (  # noqa: E731
        flags.learning_rate_constant * flags.hidden_size**-0.5
        * min((step + 1) / flags.warmup_steps, 1) * max(step + 1, flags.warmup_steps) ** -0.5
        * (min((flags.steps - step) / flags.decay_steps, 1) if flags.decay_steps else 1)
    )  # fmt: skip
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    started, stream = time.monotonic(), batches(examples, flags.batch_size, random.Random(flags.seed))
    since, tokens, nats = started, 0, 0.0
    for step in range(1, flags.steps + 1):
        loss, count = objective(model, *zip(*next(stream), strict=True), label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        tokens, nats = tokens + count, nats + float(loss.detach()) * count
        if step % 100 == 0 or step == flags.steps:
            rate = tokens / (time.monotonic() - since)
            print(f"step {step:,}  objective {nats / tokens:.3f}  {rate:,.0f} target tokens/s", flush=True)
            since, tokens, nats = time.monotonic(), 0, 0.0
    print(f"trained for {time.monotonic() - started:,.0f} s", flush=True)


@torch.inference_mode()
def translate(model, texts, pieces, flags, batch_size=32):
    """Translates texts in batches of similar length."""
    model.eval()
    options = GenerationConfig(
        num_beams=flags.beam_size, length_penalty=flags.alpha, early_stopping="never", pad_token_id=PAD_ID,
        eos_token_id=EOS_ID, decoder_start_token_id=EOS_ID, bos_token_id=EOS_ID, forced_bos_token_id=None,
    )  # fmt: skip
    rows = [[*pieces.encode(text), EOS_ID] for text in texts]
    order, translations = sorted(range(len(rows)), key=lambda at: len(rows[at])), [""] * len(rows)
    for start in range(0, len(order), batch_size):
        places = order[start : start + batch_size]
        ids = padded([rows[at] for at in places])
        options.max_new_tokens = ids.shape[1] + 50
        outputs = model.generate(input_ids=ids, attention_mask=(ids != PAD_ID).long(), generation_config=options)
        for at, row in zip(places, outputs.tolist(), strict=True):
            translations[at] = pieces.decode([piece for piece in row if piece not in (PAD_ID, EOS_ID)])
    return translations


def main(argv=None):
    """Trains the model, or loads its weights, and writes translations."""
    flags = parser().parse_args(argv)
    torch.manual_seed(flags.seed)
    if flags.threads:
        torch.set_num_threads(flags.threads)
    pieces = sentencepiece.SentencePieceProcessor(model_file=flags.vocabulary)
    model = new_model(flags, pieces.get_piece_size())
    if os.path.exists(flags.weights):
        model.load_state_dict(torch.load(flags.weights))
    else:
        examples = [pair for pair in read_examples(flags.train, pieces) if max(map(len, pair)) <= 256]
        print(f"{len(examples):,} examples, {sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
        train(model, examples, flags)
        torch.save(model.state_dict(), flags.weights)
    if flags.dev:
        print(f"dev loss {dev_loss(model, read_examples(flags.dev, pieces)):.4f} nats per target token", flush=True)
    with open(flags.output, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in translate(model, [*read_lines(flags.source)], pieces, flags))


if __name__ == "__main__":
    sys.exit(main())
