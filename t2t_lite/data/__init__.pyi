from t2t_lite.data.base_problem import Problem as Problem
