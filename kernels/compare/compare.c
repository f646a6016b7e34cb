#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compare/compare.h"

// A form of the kernels, and what a case made it write: an array for each buffer that it may write.
struct form {
    const struct weir_bundle *bundle;
    weir_program *program;
    void *results[COMPARE_ARGUMENTS];
};

struct run {
    weir_runtime *runtime;
    weir_runtime *own; // NULL: the runtime is the caller's
    weir_device *device;
    weir_queue *queue;
    struct form twin;   // without a program where it cannot run
    struct form opencl; // in place of the twin's there, a second run
};

static bool fail_weir(void)
{
    fprintf(stderr, "%s\n", weir_last_error_text());
    return false;
}

static bool is_result(const struct compare_argument *argument)
{
    return argument->parameter->kind == WEIR_PARAMETER_BUFFER && argument->parameter->writable;
}

// Launching.

static weir_status make_buffer(const struct run *run, const struct compare_argument *from,
                               struct weir_argument *argument)
{
    const struct weir_buffer_params params = {.struct_size = sizeof params,
                                              .label = from->parameter->name,
                                              .size = from->size};
    const weir_status status = weir_buffer_create(run->device, &params, &argument->buffer);
    argument->size = from->size;
    argument->access = from->parameter->writable ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_READ;
    return status < 0 ? status
                      : weir_upload(run->queue, argument->buffer, 0, from->data, from->size);
}

static weir_status make_arguments(const struct run *run, const struct compare_case *one,
                                  struct weir_argument *arguments)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < one->argument_count && status == WEIR_OK; i++) {
        const struct compare_argument *from = &one->arguments[i];
        if (from->parameter->kind == WEIR_PARAMETER_LOCAL) {
            arguments[i] = weir_local(from->size);
        } else if (from->parameter->kind == WEIR_PARAMETER_VALUE) {
            arguments[i] = weir_value(from->data, from->size);
        } else {
            arguments[i].kind = WEIR_PARAMETER_BUFFER;
            status = make_buffer(run, from, &arguments[i]);
        }
    }
    return status;
}

static weir_status take_results(const struct run *run, const struct compare_case *one,
                                const struct weir_argument *arguments, struct form *form)
{
    weir_status status = WEIR_OK;
    for (size_t i = 0; i < one->argument_count && status == WEIR_OK; i++)
        if (is_result(&one->arguments[i]))
            status = weir_download(run->queue, form->results[i], arguments[i].buffer, 0,
                                   one->arguments[i].size);
    return status;
}

static bool allocate_results(const struct compare_case *one, struct form *form)
{
    bool fine = true;
    for (size_t i = 0; i < one->argument_count; i++) {
        form->results[i] = is_result(&one->arguments[i]) ? malloc(one->arguments[i].size) : NULL;
        fine = fine && (form->results[i] || !is_result(&one->arguments[i]));
    }
    if (!fine)
        fprintf(stderr, "no memory for the results of case '%s'\n", one->name);
    return fine;
}

static void free_results(struct form *form)
{
    for (size_t i = 0; i < COMPARE_ARGUMENTS; i++) {
        free(form->results[i]);
        form->results[i] = NULL;
    }
}

// Each form begins with buffers of its own, so neither sees what the other has left.
static bool launch(const struct run *run, const struct compare_case *one, weir_program *program,
                   struct form *out)
{
    struct weir_argument arguments[COMPARE_ARGUMENTS] = {{0}};
    weir_kernel *kernel = NULL;
    weir_status status = weir_kernel_create(program, one->kernel, &kernel);
    if (status == WEIR_OK)
        status = make_arguments(run, one, arguments);
    if (status == WEIR_OK)
        status = weir_queue_launch_array(run->queue, kernel, one->grid, one->block, arguments,
                                         one->argument_count);
    if (status == WEIR_OK)
        status = take_results(run, one, arguments, out);
    for (size_t i = 0; i < one->argument_count; i++)
        weir_buffer_destroy(&arguments[i].buffer);
    weir_kernel_destroy(&kernel);
    if (status < 0)
        printf("FAIL  %s: %s\n", one->name, weir_last_error_text());
    return status == WEIR_OK;
}

// Judging.

static bool judge_all(const struct run *run, const struct compare_case *one)
{
    bool fine = true;
    size_t results = 0;
    for (size_t i = 0; i < one->argument_count; i++) {
        results += is_result(&one->arguments[i]);
        if (is_result(&one->arguments[i]))
            fine = compare_judge(stdout, one, &one->arguments[i], run->twin.results[i],
                                 run->opencl.results[i]) &&
                   fine;
    }
    if (results == 0)
        printf("FAIL  %s: kernel '%s' has no buffer that it may write\n", one->name, one->kernel);
    return fine && results > 0;
}

static bool run_case(struct run *run, const json_t *from)
{
    char message[COMPARE_MESSAGE];
    struct compare_case one;
    bool fine = compare_read_case(from, run->opencl.bundle, &one, message);
    if (!fine)
        fprintf(stderr, "%s\n", message);
    weir_program *first = run->twin.program ? run->twin.program : run->opencl.program;
    fine = fine && allocate_results(&one, &run->twin) && allocate_results(&one, &run->opencl) &&
           launch(run, &one, run->opencl.program, &run->opencl) &&
           launch(run, &one, first, &run->twin) && judge_all(run, &one);
    free_results(&run->twin);
    free_results(&run->opencl);
    compare_case_finish(&one);
    return fine;
}

// The machine.

static const char *twin_name(const struct weir_bundle *bundle)
{
    for (uint32_t i = 0; i < bundle->image_count; i++)
        if (weir_image_is(weir_bundle_image(bundle, i), WEIR_IMAGE_TWIN))
            return weir_bundle_image(bundle, i)->data;
    return "the other form";
}

static weir_status load(const struct run *run, struct form *form)
{
    const struct weir_program_params params = {.struct_size = sizeof params,
                                               .bundle = form->bundle};
    return weir_program_create(run->device, &params, &form->program);
}

static bool open_device(struct run *run)
{
    if (!run->runtime && weir_open(NULL, &run->own) < 0)
        return fail_weir();
    if (run->own)
        run->runtime = run->own;
    if (weir_device_open(run->runtime, NULL, &run->device) < 0)
        return fail_weir();
    const char *backend = weir_runtime_backend(run->runtime);
    const bool cuda = strcmp(backend, "cuda") == 0;
    if (weir_queue_create(run->device, NULL, &run->queue) < 0 || load(run, &run->opencl) < 0 ||
        (cuda && load(run, &run->twin) < 0))
        return fail_weir();
    if (cuda)
        printf("%s against the OpenCL C of %s\n", twin_name(run->twin.bundle),
               run->opencl.bundle->name);
    else
        printf("skipped: %s needs a CUDA device, and the backend is %s; the OpenCL C runs twice\n",
               twin_name(run->twin.bundle), backend);
    return true;
}

static bool close_device(struct run *run)
{
    weir_program_destroy(&run->twin.program);
    weir_program_destroy(&run->opencl.program);
    weir_queue_destroy(&run->queue);
    bool fine = !run->device || weir_device_close(&run->device) == WEIR_OK;
    if (run->own)
        fine = weir_close(&run->own) == WEIR_OK && fine;
    return fine || fail_weir();
}

int compare_kernels(const struct compare_params *params)
{
    struct run run = {.runtime = params->runtime,
                      .twin = {.bundle = params->twin},
                      .opencl = {.bundle = params->opencl}};
    char message[COMPARE_MESSAGE];
    json_t *cases = compare_read_file(params->cases, message);
    if (!cases)
        fprintf(stderr, "%s\n", message);
    bool fine = cases && open_device(&run);
    const bool opened = fine;
    for (size_t i = 0; i < json_array_size(cases) && opened; i++)
        fine = run_case(&run, json_array_get(cases, i)) && fine;
    fine = close_device(&run) && fine;
    json_decref(cases);
    return fine && fflush(stdout) == 0 ? 0 : 1;
}
