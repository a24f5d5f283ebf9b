from t2t_lite.runs.opening import open_run as open_run
from t2t_lite.runs.saving import save_run as save_run
