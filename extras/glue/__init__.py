"""Published classification data sets under tensor2tensor's names: sentiment, acceptability and sentence pairs.

For comparing encoders on IMDb, SNLI (arXiv 1508.05326), and GLUE's SST-2, CoLA, RTE and MultiNLI (1804.07461).
"""
