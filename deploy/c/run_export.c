/* Runs a SavedModel of t2t-exporter on lines of text, with TensorFlow's C API and without Python.

   run_export EXPORT [SIGNATURE [INPUT ...] [INPUT=NUMBER ...]] < lines > answers.jsonl

   Each line of standard input gives one line of JSON with the signature's outputs. If a signature has several string
   inputs, name them in the order of a line's columns, which are separated by tabs. INPUT=NUMBER applies to every
   line. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "json.h"
#include "signature.h"
#include "tensorflow/c/tf_tstring.h"

#ifndef TEXT_OPERATIONS
#define TEXT_OPERATIONS "." /* folder python/ops of the package tensorflow_text */
#endif

/* Libraries of the operations that exports use in addition to TensorFlow's. */
static const char* LIBRARIES[] = {
    "_sentencepiece_tokenizer.so",
    "_fast_wordpiece_tokenizer.so",
    "_wordpiece_tokenizer.so", /* tensor2tensor's subwords */
    "_regex_split_ops.so",     /* also these, in exports of version 0.1 */
};

enum { LINES_PER_RUN = 32 };

typedef struct {
    char* bytes; /* in any encoding; may contain NUL */
    size_t length;
} Line;

typedef struct {
    TF_Graph* graph;
    TF_Session* session;
    Signature signature;
    int columns[MOST_TENSORS]; /* index of each column's input */
    int number_of_columns;
    TF_Tensor* fixed[MOST_TENSORS]; /* each input's value for all lines, or NULL */
    TF_Output inputs[MOST_TENSORS], outputs[MOST_TENSORS];
} Export;

static void fail(const char* format, ...) {
    va_list values;
    va_start(values, format);
    fputs("run_export: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(2);
}

/* Fails unless the status is OK. The error is the formatted text and the first line of the status's message. */
static void check(const TF_Status* status, const char* format, ...) {
    if (TF_GetCode(status) == TF_OK) return;
    char words[4096];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof(words), format, values);
    va_end(values);
    const char* message = TF_Message(status);
    fail("%s%.*s", words, (int)strcspn(message, "\n"), message);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* ---- Loading ---- */

static void load_operations(TF_Status* status) {
    const char* folder = getenv("TEXT_OPERATIONS");
    if (folder == NULL) folder = TEXT_OPERATIONS;
    for (size_t i = 0; i < sizeof(LIBRARIES) / sizeof(*LIBRARIES); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, LIBRARIES[i]);
        TF_LoadLibrary(path, status); /* stays loaded until the end */
        check(status, "TEXT_OPERATIONS=%s: ", folder);
    }
}

static void find_outputs(TF_Graph* graph, const SignatureTensors* tensors, TF_Output* found) {
    for (int i = 0; i < tensors->number; i++) {
        const SignatureTensor* tensor = &tensors->tensors[i];
        found[i] = (TF_Output){TF_GraphOperationByName(graph, tensor->operation), tensor->index};
        if (found[i].oper == NULL) fail("%s: the graph has no operation %s", tensor->name, tensor->operation);
    }
}

static void load_export(Export* export, const char* folder, const char* signature, TF_Status* status) {
    const char* tags[] = {"serve"};
    TF_SessionOptions* options = TF_NewSessionOptions();
    TF_Buffer* meta_graph = TF_NewBuffer();
    *export = (Export){.graph = TF_NewGraph()};
    export->session =
        TF_LoadSessionFromSavedModel(options, NULL, folder, tags, 1, export->graph, meta_graph, status);
    check(status, "%s: ", folder);
    char* problem = read_signature(meta_graph, signature, &export->signature);
    if (problem != NULL) fail("%s: %s", folder, problem);
    find_outputs(export->graph, &export->signature.inputs, export->inputs);
    find_outputs(export->graph, &export->signature.outputs, export->outputs);
    TF_DeleteBuffer(meta_graph);
    TF_DeleteSessionOptions(options);
}

/* ---- Assigning columns and values to inputs ---- */

static int find_input(const SignatureTensors* inputs, const char* name, size_t length) {
    for (int i = 0; i < inputs->number; i++) {
        const char* known = inputs->tensors[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0) return i;
    }
    return -1;
}

/* Returns a scalar of the input's type, or NULL if the text is not a number of this type. */
static TF_Tensor* number_tensor(TF_DataType type, const char* text) {
    char* end;
    errno = 0;
    float real = strtof(text, &end);
    long whole = type == TF_INT32 ? strtol(text, &end, 10) : 0;
    if (end == text || *end != '\0' || errno != 0 || whole != (int32_t)whole) return NULL;
    if (type != TF_FLOAT && type != TF_INT32) return NULL;
    TF_Tensor* tensor = TF_AllocateTensor(type, NULL, 0, 4);
    if (type == TF_INT32) {
        *(int32_t*)TF_TensorData(tensor) = (int32_t)whole;
    } else {
        *(float*)TF_TensorData(tensor) = real;
    }
    return tensor;
}

static void read_arguments(Export* export, int number, char** arguments) {
    const SignatureTensors* inputs = &export->signature.inputs;
    int given[MOST_TENSORS] = {0};
    for (int i = 0; i < number; i++) {
        const char* equals = strchr(arguments[i], '=');
        size_t length = equals == NULL ? strlen(arguments[i]) : (size_t)(equals - arguments[i]);
        int at = find_input(inputs, arguments[i], length);
        if (at < 0) fail("%s: the signature has no such input", arguments[i]);
        TF_DataType type = inputs->tensors[at].type;
        if (given[at]++) fail("%s: given twice", arguments[i]);
        if (equals == NULL) {
            if (type != TF_STRING) fail("%s takes a number: %s=NUMBER", arguments[i], arguments[i]);
            export->columns[export->number_of_columns++] = at;
        } else {
            export->fixed[at] = number_tensor(type, equals + 1);
            if (export->fixed[at] == NULL) fail("%s: not a number that this input takes", arguments[i]);
        }
    }
    for (int at = 0; at < inputs->number; at++) {
        if (given[at]) continue;
        const char* name = inputs->tensors[at].name;
        if (inputs->tensors[at].type != TF_STRING) fail("the signature needs %s=NUMBER", name);
        /* A single string input need not be named: its text is the whole line. */
        if (export->number_of_columns++ > 0) fail("the signature has several string inputs: name them all");
        export->columns[0] = at;
    }
}

/* ---- Answering ---- */

/* Returns the texts of one column as a tensor, string [number]. */
static TF_Tensor* column_tensor(const Export* export, const Line* lines, int number, int column, long first_line) {
    int64_t rows = number;
    TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, &rows, 1, number * sizeof(TF_TString));
    TF_TString* texts = TF_TensorData(tensor);
    int last = export->number_of_columns - 1;
    for (int row = 0; row < number; row++) {
        const char* start = lines[row].bytes;
        const char* stop = start + lines[row].length;
        for (int at = 0; at <= last && last > 0; at++) {
            const char* tab = memchr(start, '\t', stop - start);
            if ((tab == NULL) != (at == last)) fail("line %ld: not %d columns", first_line + row, last + 1);
            if (at == column && tab != NULL) stop = tab;
            if (at == column) break;
            start = tab + 1;
        }
        TF_StringInit(&texts[row]);
        TF_StringCopy(&texts[row], start, stop - start);
    }
    return tensor;
}

static void delete_texts(TF_Tensor* tensor) {
    TF_TString* texts = TF_TensorData(tensor);
    for (int64_t i = 0; i < TF_TensorElementCount(tensor); i++) TF_StringDealloc(&texts[i]);
    TF_DeleteTensor(tensor);
}

static void write_answers(const SignatureTensors* outputs, TF_Tensor** values, int number) {
    for (int row = 0; row < number; row++) {
        for (int i = 0; i < outputs->number; i++) {
            const char* name = outputs->tensors[i].name;
            fputs(i == 0 ? "{" : ", ", stdout);
            write_json_string(stdout, name, strlen(name));
            fputs(": ", stdout);
            if (!write_json_row(stdout, values[i], row)) fail("%s: outputs of this type cannot be written", name);
        }
        puts("}");
    }
    /* What could not be written is not written later either, and the last fflush says nothing of it. */
    if (ferror(stdout)) fail("standard output: %s", strerror(errno));
}

static void answer_lines(Export* export, const Line* lines, int number, long first_line, TF_Status* status) {
    const SignatureTensors *inputs = &export->signature.inputs, *outputs = &export->signature.outputs;
    TF_Tensor *fed[MOST_TENSORS], *found[MOST_TENSORS] = {NULL};
    memcpy(fed, export->fixed, sizeof(fed));
    for (int column = 0; column < export->number_of_columns; column++) {
        fed[export->columns[column]] = column_tensor(export, lines, number, column, first_line);
    }
    TF_SessionRun(export->session, NULL, export->inputs, fed, inputs->number, export->outputs, found, outputs->number,
                  NULL, 0, NULL, status);
    check(status, "lines from %ld on: ", first_line);
    for (int i = 0; i < outputs->number; i++) {
        if (TF_NumDims(found[i]) < 1 || TF_Dim(found[i], 0) != number) {
            fail("%s: not one answer per line", outputs->tensors[i].name);
        }
    }
    write_answers(outputs, found, number);
    for (int column = 0; column < export->number_of_columns; column++) delete_texts(fed[export->columns[column]]);
    for (int i = 0; i < outputs->number; i++) TF_DeleteTensor(found[i]);
}

/* Answers the lines of standard input. Returns their number. */
static long answer_input(Export* export, TF_Status* status) {
    Line lines[LINES_PER_RUN] = {{0}};
    size_t room[LINES_PER_RUN] = {0};
    long answered = 0;
    int number;
    do {
        for (number = 0; number < LINES_PER_RUN; number++) {
            Line* line = &lines[number];
            ssize_t length = getline(&line->bytes, &room[number], stdin);
            if (length < 0) break;
            if (line->bytes[length - 1] == '\n') length--;
            if (length > 0 && line->bytes[length - 1] == '\r') length--; /* as the commands read CRLF */
            line->length = length;
        }
        if (number > 0) answer_lines(export, lines, number, answered + 1, status);
        answered += number;
    } while (number == LINES_PER_RUN);
    if (ferror(stdin)) fail("standard input: %s", strerror(errno));
    for (int i = 0; i < LINES_PER_RUN; i++) free(lines[i].bytes);
    return answered;
}

static void delete_export(Export* export, TF_Status* status) {
    for (int i = 0; i < MOST_TENSORS; i++) {
        if (export->fixed[i] != NULL) TF_DeleteTensor(export->fixed[i]);
    }
    TF_CloseSession(export->session, status);
    TF_DeleteSession(export->session, status);
    TF_DeleteGraph(export->graph);
    free_signature(&export->signature);
}

int main(int number, char** arguments) {
    if (number < 2) fail("usage: run_export EXPORT [SIGNATURE [INPUT ...] [INPUT=NUMBER ...]] < lines");
    double start = seconds();
    TF_Status* status = TF_NewStatus();
    Export export;
    load_operations(status);
    load_export(&export, arguments[1], number > 2 ? arguments[2] : "serving_default", status);
    read_arguments(&export, number > 3 ? number - 3 : 0, arguments + 3);
    double loaded = seconds();
    long answered = answer_input(&export, status);
    if (fflush(stdout) != 0) fail("standard output: %s", strerror(errno));
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage); /* ru_maxrss: KiB on Linux */
    fprintf(stderr, "TensorFlow %s: loaded in %.2f s, %ld lines in %.2f s, at most %ld MiB of memory\n", TF_Version(),
            loaded - start, answered, seconds() - loaded, usage.ru_maxrss / 1024);
    delete_export(&export, status);
    TF_DeleteStatus(status);
    return 0;
}
