"""Notes as files and as sound."""

import io
import wave

import numpy as np
import pytest

from t2t_lite.media.midi_files import Note, wav_bytes

pytest.importorskip("pretty_midi")


def heard(notes):
    """Returns (samples from -1 to 1, samples per second)."""
    with wave.open(io.BytesIO(wav_bytes(notes))) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32767, file.getframerate()


@pytest.mark.parametrize("pitch, frequency", [(69, 440.0), (57, 220.0), (81, 880.0)])
def test_a_note_sounds_at_its_pitch_while_it_lasts(pitch, frequency):
    sound, rate = heard([Note(0.5, 1.5, pitch)])
    during = sound[int(0.5 * rate) : int(1.5 * rate)]
    spectrum = np.abs(np.fft.rfft(during))
    assert np.argmax(spectrum) * rate / len(during) == pytest.approx(frequency, abs=1.5)
    assert not sound[: int(0.5 * rate)].any() and not sound[int(1.5 * rate) :].any()
    assert 0.85 < np.abs(sound).max() <= 1


def test_voices_sound_together_and_no_notes_are_silence():
    notes = [Note(0, 1, 69, track=0), Note(0, 1, 76, track=1)]
    sound, rate = heard(notes)
    spectrum = np.abs(np.fft.rfft(sound[:rate]))
    assert {*np.argsort(spectrum)[-2:].tolist()} == {440, 659}
    assert not heard([])[0].any()
