// weir train: from the command line to the figures. Rank 0 alone prints them; every rank prints its
// errors.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/common/options.h"
#include "cli/common/signals.h"
#include "cli/runtime/open.h"
#include "cli/train/train.h"

enum {
    MADE_CLASSES = 10,
    MADE_COUNT = 60000,
    MADE_NOISE = 96
};

// What failed is told as it was found: a file, or another rank, is no matter of set-up.
static int tell_error(void)
{
    const weir_status status = weir_last_error()->status;
    const int code = cli_weir_error();
    return status == WEIR_ERROR_IO || status == WEIR_ERROR_COMM ? CLI_FAILED : code;
}

// Data.

static weir_status make_data(struct train_command *command)
{
    const struct train_options *o = &command->options;
    const bool colours = o->program == WEIR_TRAIN_AUGMENT;
    const uint32_t side = (uint32_t)(o->side ? o->side : colours ? 32 : 16);
    const struct weir_train_made_params made = {
        .struct_size = sizeof made,
        .shape = {.height = side, .width = side, .channels = colours ? 3 : 1},
        .classes = MADE_CLASSES,
        .count = MADE_COUNT,
        .seed = o->seed,
        .noise = MADE_NOISE,
    };
    return weir_train_data_make(&made, &command->data);
}

static weir_status open_data(struct train_command *command)
{
    char images[4096], labels[4096];
    const char *folder = command->options.data;
    snprintf(images, sizeof images, "%s/train-images-idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/train-labels-idx1-ubyte", folder);
    return weir_train_data_open(images, labels, &command->data);
}

// The device.

// Of ranks on one machine each takes a device of its own, as far as there are enough.
static weir_status open_device(struct train_command *command)
{
    struct cli_devices devices;
    char index[16];
    struct weir_device_params params = {.struct_size = sizeof params,
                                        .label = "train",
                                        .select = command->options.device};
    cli_devices_of_rank(command->runtime, &devices);
    if (!params.select && devices.count > 0) {
        snprintf(index, sizeof index, "%" PRIu32, devices.indices[0]);
        params.select = index;
    }
    return weir_device_open_at(command->runtime, &params, &command->device, NULL, 0);
}

static weir_status join(struct train_command *command)
{
    const struct weir_comm_params params = {.struct_size = sizeof params, .label = "train"};
    const weir_status status = open_device(command);
    return status == WEIR_OK ? weir_comm_create(command->device, &params, &command->comm) : status;
}

// A rank that lacks its data tells the others, so it joins them first.
static weir_status prepare_data(struct train_command *command)
{
    if ((command->options.data ? open_data(command) : make_data(command)) == WEIR_OK)
        return WEIR_OK;
    const struct weir_error cause = *weir_last_error();
    weir_comm_abort(command->comm, cause.message);
    return weir_error_set(&cause);
}

// Returns the exit code after a message, CLI_OK if everything is open.
static int open_all(struct train_command *command)
{
    // A configuration that cannot be read is told as by all commands.
    if (cli_open(command->options.config, NULL, &command->runtime) != WEIR_OK)
        return cli_weir_error();
    if (join(command) != WEIR_OK || prepare_data(command) != WEIR_OK)
        return tell_error();
    command->params.comm = command->comm;
    command->params.data = command->data;
    return CLI_OK;
}

static int close_all(struct train_command *command, int code)
{
    weir_comm_destroy(&command->comm);
    code = cli_close(&command->device, &command->runtime, code);
    weir_train_data_destroy(&command->data);
    weir_train_figures_finish(&command->figures);
    return code;
}

// Running.

static bool is_first(const struct train_command *command)
{
    return weir_comm_rank(command->comm) == 0;
}

static void show_progress(void *user, uint64_t step, float loss)
{
    struct train_command *command = user;
    char text[48];
    snprintf(text, sizeof text, "loss %.4g", (double)loss);
    cli_progress_update(&command->progress, step, text);
}

static bool make_folder(const struct train_command *command)
{
    const char *folder = command->options.checkpoint;
    if (!folder || !is_first(command) || mkdir(folder, 0777) == 0 || errno == EEXIST)
        return true;
    cli_error("%s cannot be made: %s; make the folder above it first, or name another with "
              "--checkpoint",
              folder, strerror(errno));
    return false;
}

static bool can_begin(const struct train_command *command)
{
    return make_folder(command) && (!is_first(command) || cli_can_write(command->options.curve));
}

static int finish(const struct train_command *command)
{
    if (!is_first(command))
        return CLI_OK;
    if (command->options.curve && !train_draw(command))
        return CLI_FAILED;
    return command->options.quiet && !command->options.json ? CLI_OK : train_tell(command);
}

static int run(struct train_command *command)
{
    if (!can_begin(command)) {
        weir_comm_abort(command->comm, "rank 0 cannot write its files");
        return CLI_FAILED;
    }
    command->params.progress = show_progress;
    command->params.user = command;
    cli_progress_start(&command->progress, is_first(command) && !command->options.quiet,
                       command->options.steps, "steps/s");
    const weir_status status = weir_train_run(&command->params, &command->figures);
    cli_progress_end(&command->progress);
    return status == WEIR_OK ? finish(command) : tell_error();
}

static int train(weir_train_program program, int argc, char **argv)
{
    struct train_command command = {.options = {.program = program,
                                                .seed = 1,
                                                .hidden = 2,
                                                .width = 256,
                                                .channels = 8,
                                                .steps = 200,
                                                .batch = 32}};
    int code;
    if (!train_parse(&command, argc, argv, &code))
        return code;
    if (!train_take_options(&command))
        return CLI_USAGE;
    cli_set_quiet(command.options.quiet);
    cli_log_to_stderr();
    if (!cli_signals_start())
        return CLI_FAILED;
    code = open_all(&command);
    if (code == CLI_OK)
        code = run(&command);
    code = close_all(&command, code);
    cli_signals_end();
    return code;
}

static int ddp_main(int argc, char **argv)
{
    return train(WEIR_TRAIN_DDP, argc, argv);
}

static int accumulate_main(int argc, char **argv)
{
    return train(WEIR_TRAIN_ACCUMULATE, argc, argv);
}

static int augment_main(int argc, char **argv)
{
    return train(WEIR_TRAIN_AUGMENT, argc, argv);
}

static int encdec_main(int argc, char **argv)
{
    return train(WEIR_TRAIN_ENCDEC, argc, argv);
}

static int train_main(int argc, char **argv)
{
    static const struct cli_command members[] = {
        {.name = "ddp", .summary = "ranks that share each batch", .main = ddp_main},
        {.name = "accumulate", .summary = "several passes a step", .main = accumulate_main},
        {.name = "augment", .summary = "images augmented on the device", .main = augment_main},
        {.name = "encdec", .summary = "a head on a frozen encoder", .main = encdec_main},
    };
    const struct cli_command group = {
        .what = "PROGRAM",
        .summary = "Trains a small network, on one device or on several ranks.",
        .members = members,
        .member_count = sizeof members / sizeof *members,
    };
    return cli_dispatch(&group, "weir train", "weir-train(1)", argc, argv);
}

const struct cli_command cli_train = {
    .name = "train",
    .summary = "train a small network, on one device or on several ranks",
    .main = train_main,
};
