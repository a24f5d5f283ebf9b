/* One row of a tensor as JSON. */
#ifndef JSON_H_
#define JSON_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tensorflow/c/c_api.h"

/* Writes tensor[row]: a value, or nested lists of them. Returns false if its type is none that exports answer with. */
bool write_json_row(FILE* file, const TF_Tensor* tensor, int64_t row);

/* Writes a string of UTF-8 with its quotation marks. */
void write_json_string(FILE* file, const char* bytes, size_t length);

#endif
