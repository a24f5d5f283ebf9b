from t2t_lite import data as data
from t2t_lite import decoding as decoding
from t2t_lite import errors as errors
from t2t_lite import evaluation as evaluation
from t2t_lite import export as export
from t2t_lite import hparams as hparams  # noqa: TID251
from t2t_lite import layers as layers
from t2t_lite import models as models
from t2t_lite import problems as problems  # noqa: TID251
from t2t_lite import registry as registry
from t2t_lite import runs as runs
from t2t_lite import tasks as tasks
from t2t_lite import training as training
from t2t_lite.decoding.generator import Generator as Generator
from t2t_lite.decoding.loading import load as load
from t2t_lite.decoding.predictor import Predictor as Predictor
from t2t_lite.decoding.translator import Translator as Translator
from t2t_lite.settings import config as config
from t2t_lite.settings.config import HParams as HParams

__version__: str
