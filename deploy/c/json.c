#include "json.h"

#include <math.h>

#include "tensorflow/c/tf_tstring.h"

void write_json_string(FILE* file, const char* bytes, size_t length) {
    fputc('"', file);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = bytes[i];
        if (byte < 0x20) {
            fprintf(file, "\\u%04x", byte);
        } else {
            if (byte == '"' || byte == '\\') fputc('\\', file);
            fputc(byte, file);
        }
    }
    fputc('"', file);
}

static bool write_value(FILE* file, const TF_Tensor* tensor, int64_t at) {
    const void* data = TF_TensorData(tensor);
    switch (TF_TensorType(tensor)) {
        case TF_STRING: {
            const TF_TString* text = (const TF_TString*)data + at;
            write_json_string(file, TF_StringGetDataPointer(text), TF_StringGetSize(text));
            return true;
        }
        case TF_FLOAT: {
            float value = ((const float*)data)[at];
            if (isfinite(value)) {
                fprintf(file, "%.9g", value); /* nine digits distinguish all floats */
            } else {
                fputs("null", file);
            }
            return true;
        }
        case TF_INT32: fprintf(file, "%d", ((const int32_t*)data)[at]); return true;
        case TF_BOOL: fputs(((const uint8_t*)data)[at] ? "true" : "false", file); return true;
        default: return false;
    }
}

/* Writes the values along `axis` and all later axes, starting at the element `at`. */
static bool write_values(FILE* file, const TF_Tensor* tensor, int axis, int64_t at) {
    if (axis == TF_NumDims(tensor)) return write_value(file, tensor, at);
    int64_t step = 1;
    for (int i = axis + 1; i < TF_NumDims(tensor); i++) step *= TF_Dim(tensor, i);
    fputc('[', file);
    for (int64_t i = 0; i < TF_Dim(tensor, axis); i++) {
        if (i > 0) fputs(", ", file);
        if (!write_values(file, tensor, axis + 1, at + i * step)) return false;
    }
    fputc(']', file);
    return true;
}

bool write_json_row(FILE* file, const TF_Tensor* tensor, int64_t row) {
    int64_t step = 1;
    for (int i = 1; i < TF_NumDims(tensor); i++) step *= TF_Dim(tensor, i);
    return write_values(file, tensor, 1, row * step);
}
