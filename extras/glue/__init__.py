"""Published texts with labels, under tensor2tensor's names: sentiment, acceptability and pairs of sentences.

For comparing encoders: IMDb; SST-2, CoLA, RTE and MultiNLI of GLUE (arXiv 1804.07461); and SNLI (1508.05326).
"""
