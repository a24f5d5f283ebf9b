"""Published texts with labels: sentiment, pairs of sentences and questions, by tensor2tensor's names.

For who compares encoders: IMDb, and of GLUE (arXiv 1804.07461) SST-2, CoLA, RTE and MultiNLI, and SNLI (1508.05326).
"""
