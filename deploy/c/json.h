/* One row of a tensor as JSON. */
#ifndef JSON_H_
#define JSON_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tensorflow/c/c_api.h"

/* Writes tensor[row]: a value, or nested lists of them. Returns false if exports have no outputs of its type. */
bool write_json_row(FILE* file, const TF_Tensor* tensor, int64_t row);

/* Writes a UTF-8 string in quotation marks. */
void write_json_string(FILE* file, const char* bytes, size_t length);

#endif
