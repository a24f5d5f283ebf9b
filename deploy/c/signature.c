/* Parses the three required messages of TensorFlow's meta_graph.proto without a protocol buffer library. */
#include "signature.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers. A map is a repeated message whose field 1 is the key and field 2 the value. */
enum { META_GRAPH_SIGNATURES = 5 };
enum { SIGNATURE_INPUTS = 1, SIGNATURE_OUTPUTS = 2 };
enum { TENSOR_NAME = 1, TENSOR_TYPE = 2 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };

typedef struct {
    const uint8_t *at, *end;
} Bytes;

typedef struct {
    uint64_t number; /* the field's number */
    uint64_t value;  /* if the field is an integer or enumeration */
    Bytes bytes;     /* if the field is a string or message */
} Field;

static bool read_varint(Bytes* from, uint64_t* value) {
    *value = 0;
    for (int shift = 0; from->at < from->end && shift < 64; shift += 7) {
        uint8_t byte = *from->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

/* Takes the next field from a message. Returns false at the end, or if the bytes are not a valid message. */
static bool next_field(Bytes* message, Field* field) {
    uint64_t tag, length;
    if (!read_varint(message, &tag)) return false;
    *field = (Field){.number = tag >> 3, .bytes = {message->at, message->at}};
    switch (tag & 7) {
        case 0: return read_varint(message, &field->value);
        case 1: length = 8; break;
        case 2:
            if (!read_varint(message, &length)) return false;
            break;
        case 5: length = 4; break;
        default: return false;
    }
    if (length > (uint64_t)(message->end - message->at)) return false;
    field->bytes = (Bytes){message->at, message->at + length};
    message->at += length;
    return true;
}

static char* copy_text(Bytes bytes) {
    return strndup((const char*)bytes.at, bytes.end - bytes.at);
}

/* Takes the next entry of the map `number` from a message; the key is allocated. Returns false if there are no more. */
static bool next_entry(Bytes* message, uint64_t number, char** key, Bytes* value) {
    Field field, part;
    while (next_field(message, &field)) {
        if (field.number != number) continue;
        *key = strdup("");
        *value = (Bytes){field.bytes.end, field.bytes.end};
        while (next_field(&field.bytes, &part)) {
            if (part.number == MAP_VALUE) *value = part.bytes;
            if (part.number != MAP_KEY) continue;
            free(*key);
            *key = copy_text(part.bytes);
        }
        return true;
    }
    return false;
}

static void read_tensor(Bytes message, SignatureTensor* tensor) {
    Field field;
    while (next_field(&message, &field)) {
        if (field.number == TENSOR_TYPE) tensor->type = (TF_DataType)field.value;
        if (field.number != TENSOR_NAME) continue;
        free(tensor->operation);
        tensor->operation = copy_text(field.bytes);
        char* colon = strrchr(tensor->operation, ':');
        tensor->index = colon == NULL ? 0 : atoi(colon + 1);
        if (colon != NULL) *colon = '\0';
    }
}

static int compare_names(const void* one, const void* other) {
    return strcmp(((const SignatureTensor*)one)->name, ((const SignatureTensor*)other)->name);
}

/* Returns false if there are more than MOST_TENSORS tensors. */
static bool read_tensors(Bytes signature, uint64_t number, SignatureTensors* tensors) {
    char* name;
    Bytes value;
    while (next_entry(&signature, number, &name, &value)) {
        if (tensors->number == MOST_TENSORS) {
            free(name);
            return false;
        }
        SignatureTensor* tensor = &tensors->tensors[tensors->number++];
        *tensor = (SignatureTensor){.name = name};
        read_tensor(value, tensor);
        if (tensor->operation == NULL) tensor->operation = strdup("");
    }
    qsort(tensors->tensors, tensors->number, sizeof(SignatureTensor), compare_names);
    return true;
}

char* read_signature(const TF_Buffer* meta_graph, const char* name, Signature* signature) {
    const uint8_t* data = meta_graph->data;
    Bytes message = {data, data + meta_graph->length}, value;
    char *key, *problem;
    char* known = strdup("");
    *signature = (Signature){0};
    while (next_entry(&message, META_GRAPH_SIGNATURES, &key, &value)) {
        if (strcmp(key, name) == 0) {
            bool fits = read_tensors(value, SIGNATURE_INPUTS, &signature->inputs) &&
                        read_tensors(value, SIGNATURE_OUTPUTS, &signature->outputs);
            free(key);
            free(known);
            return fits ? NULL : strdup("the signature has too many inputs or outputs");
        }
        if (strncmp(key, "__", 2) != 0) { /* skips TensorFlow's own signatures, such as __saved_model_init_op */
            char* longer;
            if (asprintf(&longer, "%s%s%s", known, *known ? ", " : "", key) < 0) abort();
            free(known);
            known = longer;
        }
        free(key);
    }
    if (asprintf(&problem, "no signature %s; there are: %s", name, *known ? known : "none") < 0) abort();
    free(known);
    return problem;
}

void free_signature(Signature* signature) {
    SignatureTensors* both[] = {&signature->inputs, &signature->outputs};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < both[i]->number; j++) {
            free(both[i]->tensors[j].name);
            free(both[i]->tensors[j].operation);
        }
    }
    *signature = (Signature){0};
}
