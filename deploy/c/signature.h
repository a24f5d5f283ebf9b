/* Reads the signatures of a SavedModel from the MetaGraphDef that TensorFlow's C API returns. */
#ifndef SIGNATURE_H_
#define SIGNATURE_H_

#include <stdbool.h>
#include <stddef.h>

#include "tensorflow/c/c_api.h"

#define MOST_TENSORS 16

typedef struct {
    char* name;      /* the name that callers use, such as "inputs" */
    char* operation; /* the graph's operation, such as "serving_default_inputs" */
    int index;       /* index of the operation's output */
    TF_DataType type;
} SignatureTensor;

typedef struct {
    int number;
    SignatureTensor tensors[MOST_TENSORS]; /* sorted by name */
} SignatureTensors;

typedef struct {
    SignatureTensors inputs, outputs;
} Signature;

/* Reads the signature `name`. Returns NULL, or an allocated error message for the user. */
char* read_signature(const TF_Buffer* meta_graph, const char* name, Signature* signature);

void free_signature(Signature* signature);

#endif
