// weir train: from the command line to the figures. Rank 0 alone prints them; every rank prints its
// errors.
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weir/weir.h>

#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/own.h"
#include "cli/common/plot.h"
#include "cli/common/progress.h"
#include "cli/common/signals.h"
#include "cli/runtime/open.h"
#include "pipelines/train/train.h"

// The command line, but for what goes into the params as it is.
struct train_options {
    const char *config;
    const char *device;
    // Data.
    const char *data; // a folder; NULL: made
    uint64_t side;    // of made images
    // The model.
    const char *network;
    const char *element;
    const char *products;
    // Steps.
    const char *optimizer;
    const char *rate;
    const char *momentum;
    const char *buckets;
    const char *wire;
    // What is kept and told.
    const char *checkpoint; // a folder
    const char *curve;
    bool json;
};

struct train_command {
    const struct program *program;
    struct train_options options;
    struct weir_train_run_params params;
    weir_train_data *data;
    weir_runtime *runtime;
    weir_device *device;
    weir_comm *comm;
    struct cli_progress progress;
    struct weir_train_figures figures;
    const char *refusal; // told to the other ranks when the command ends; NULL: it ends well
};

// The command line. Programs have most options in common, and a few of their own.

enum {
    SIDE_MAX = 1024,
    WIDTH_MAX = 65536,
    MIB = 1 << 20,
    BUCKET_MIB_MAX = 65536
};

// A program: what its help says, and its default sizes.
struct program {
    const char *name;
    weir_train_program program;
    const char *network;
    const char *about;
};

static const struct program programs[] = {
    {"ddp", WEIR_TRAIN_DDP, "mlp",
     "Trains a network on labelled images, on each rank with a part of each batch. Gradients are\n"
     "added up over the ranks in buckets, while the backward pass makes others. Ranks come from\n"
     "`weir launch -n 2 weir train ddp`, mpirun, torchrun or Slurm; alone it is one rank.\n"
     "--serial reduces them after the backward pass, and loads each batch when it is needed.\n"
     "\n"
     "  weir train ddp --plot loss.svg\n"
     "  weir launch -n 2 weir train ddp --steps 1000 --checkpoint run --every 100 --resume"},
    {"accumulate", WEIR_TRAIN_ACCUMULATE, "mlp",
     "Trains as `weir train ddp` does, in steps of several passes: gradients are added up over "
     "the\n"
     "passes on the device, and over the ranks once a step.\n"
     "\n"
     "  weir train accumulate --passes 8"},
    {"augment", WEIR_TRAIN_AUGMENT, "convnet",
     "Trains on images that are augmented in each epoch anew: cropped, mirrored, with other\n"
     "contrast and brightness, normalised. They go to the device as bytes, and a queue of its own\n"
     "augments the next batch while the model is trained on this one. --serial does one after the\n"
     "other, and --on-host augments on the host.\n"
     "\n"
     "  weir train augment --data mnist --plot loss.svg"},
    {"encdec", WEIR_TRAIN_ENCDEC, "convnet",
     "Trains a head on the features of a frozen encoder. The encoder works on the next batch, on "
     "a\n"
     "queue of its own, while the head is trained on this one. --serial does one after the other.\n"
     "\n"
     "  weir train encdec --serial"},
};

// Reads the command line into `command->options` and `command->params`. augment has all options but the first, the
// other programs all but the last two.
static void train_parse(struct train_command *command, int argc, char **argv)
{
    struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    const bool augments = p->program == WEIR_TRAIN_AUGMENT;
    const struct cli_option options[] = {
        {"exact", NULL,
         "integers as inputs, and rounded activations: the same\nbits for any count of ranks",
         CLI_FLAG, &p->exact, 0, 0},
        {"batch", "N", "samples of a pass on each rank; without it, 32", CLI_COUNT, &p->batch, 1,
         WEIR_TRAIN_BATCH_MAX},
        {"buckets", "SIZE", "the largest bucket of gradients in MiB, or auto;\nwithout it, 25",
         CLI_TEXT, &o->buckets, 0, 0},
        {"channels", "N", "of a convnet's first layer; without it, 8", CLI_COUNT, &p->channels, 1,
         WIDTH_MAX / 4},
        {"checkpoint", "DIR", "keep a checkpoint there; made if missing", CLI_FOLDER,
         &o->checkpoint, 0, 0},
        CLI_CONFIG(&o->config),
        {"plot", "F.svg", "draw the loss of each step into this file", CLI_FILE, &o->curve, 0, 0},
        {"data", "DIR",
         "train-images-idx3-ubyte and train-labels-idx1-ubyte\nof this folder, in MNIST's format; "
         "without it, images\nmade from the seed",
         CLI_FOLDER, &o->data, 0, 0},
        {"device", "D",
         "the device, its number or a part of its name; without\nit, where there are several, that "
         "of the rank's number\non its machine",
         CLI_TEXT, &o->device, 0, 0},
        {"element", "E", "f32, or bf16; without it, f32", CLI_TEXT, &o->element, 0, 0},
        {"every", "N", "a checkpoint every N steps; without it, at the end", CLI_COUNT,
         &p->checkpoint_every, 1, WEIR_TRAIN_STEPS_MAX},
        {"hidden", "N", "hidden layers of an mlp; without it, 2", CLI_COUNT, &p->hidden, 0,
         WEIR_TRAIN_LAYERS_MAX - 1},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &o->json, 0, 0},
        {"momentum", "M", "of sgd; without it, 0.9", CLI_TEXT, &o->momentum, 0, 0},
        {"network", "N", "mlp or convnet; without it, mlp for ddp and accumulate,\nelse convnet",
         CLI_TEXT, &o->network, 0, 0},
        {"optimizer", "O", "sgd or adam; without it, sgd", CLI_TEXT, &o->optimizer, 0, 0},
        {"passes", "N", "passes of a step; without it, 1, of accumulate 4", CLI_COUNT, &p->passes,
         1, WEIR_TRAIN_PASSES_MAX},
        {"products", "P", "kernels, or cublas, on CUDA; without it, kernels", CLI_TEXT,
         &o->products, 0, 0},
        CLI_QUIET("print errors and nothing else"),
        {"rate", "R", "of learning; without it, 0.02, of adam 0.001", CLI_TEXT, &o->rate, 0, 0},
        {"resume", NULL, "go on after the checkpoint, if there is one", CLI_FLAG, &p->resume, 0, 0},
        {"seed", "N", "of parameters, data and order; without it, 1", CLI_COUNT, &p->seed, 0,
         UINT32_MAX},
        {"serial", NULL, "one thing after the other", CLI_FLAG, &p->serial, 0, 0},
        {"side", "N", "pixels of a made image's side; without it, 16, of\naugment 32", CLI_COUNT,
         &o->side, 1, SIDE_MAX},
        {"steps", "N", "how many, with those before a resumption; without it,\n200", CLI_COUNT,
         &p->steps, 1, WEIR_TRAIN_STEPS_MAX},
        {"width", "N", "units of a hidden layer, features of encdec; without\nit, 256", CLI_COUNT,
         &p->width, 1, WIDTH_MAX},
        {"wire", "E", "f32, or bf16, which gradients are rounded to on their\nway; without it, f32",
         CLI_TEXT, &o->wire, 0, 0},
        {"crop", "N", "cut out N x N pixels; without it, seven eighths", CLI_COUNT, &p->crop, 1,
         SIDE_MAX},
        {"on-host", NULL, "augment on the host, as batches are loaded", CLI_FLAG,
         &p->augment_on_host, 0, 0},
    };
    const struct cli_usage usage = {
        .command = cli_text("weir train %s", command->program->name),
        .operands = "",
        .about = command->program->about,
        .options = options + augments,
        .option_count = sizeof options / sizeof *options - (augments ? 1 : 2),
    };
    cli_parse(&usage, argc, argv);
}

// Words and numbers.

// A number from `minimum`, or above it with `beyond`, and below `maximum`.
static bool is_number(const char *text, double minimum, bool beyond, double maximum, float *out)
{
    char *end;
    *out = strtof(text, &end);
    const double value = (double)*out; // as it is used
    return *text != '\0' && *end == '\0' && value < maximum &&
           (beyond ? value > minimum : value >= minimum);
}

static float read_number(const char *option, const char *text, double minimum, bool beyond,
                         double maximum)
{
    float number = 0;
    if (!is_number(text, minimum, beyond, maximum, &number))
        cli_fail(CLI_USAGE, "--%s takes a number %s %g and below %g, not '%s'", option,
                 beyond ? "above" : "from", minimum, maximum, text);
    return number;
}

static void take_optimizer(struct train_command *command)
{
    static const char *const methods[] = {"sgd", "adam", NULL};
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    const bool adam = cli_choose("optimizer", o->optimizer, methods) == 1;
    p->method = adam ? WEIR_TRAIN_ADAM : WEIR_TRAIN_SGD;
    if (adam && o->momentum)
        cli_fail(CLI_USAGE, "--momentum is of sgd, and adam has none; leave it out");
    p->rate = read_number("rate", o->rate ? o->rate : adam ? "0.001" : "0.02", 0, true, 1e6);
    p->momentum = read_number("momentum", o->momentum ? o->momentum : "0.9", 0, false, 1);
}

static void take_buckets(struct train_command *command)
{
    static const char *const wires[] = {"f32", "bf16", NULL};
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    float mib = 0;
    p->wire = cli_choose("wire", o->wire, wires) ? WEIR_BF16 : WEIR_F32;
    if (!o->buckets)
        return;
    if (strcmp(o->buckets, "auto") == 0) {
        p->bucket_bytes = WEIR_BUCKETS_AUTO;
        return;
    }
    if (!is_number(o->buckets, 0, true, BUCKET_MIB_MAX, &mib))
        cli_fail(CLI_USAGE, "--buckets takes auto, or MiB above 0 and below %d, not '%s'",
                 BUCKET_MIB_MAX, o->buckets);
    p->bucket_bytes = (size_t)ceil((double)mib * MIB);
}

static void take_checkpoint(struct train_command *command)
{
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    if (!o->checkpoint && (p->resume || p->checkpoint_every))
        cli_fail(CLI_USAGE, "--%s needs a folder: --checkpoint DIR",
                 p->resume ? "resume" : "every");
    if (!o->checkpoint)
        return;
    p->checkpoint = cli_text("%s/checkpoint.safetensors", o->checkpoint);
    if (strlen(p->checkpoint) >= PATH_MAX)
        cli_fail(CLI_USAGE,
                 "the path of the file in --checkpoint is longer than %d bytes; use a shorter one",
                 PATH_MAX - 1);
}

// Sets `command->params` but for what is opened.
static void take_options(struct train_command *command)
{
    static const char *const networks[] = {"mlp", "convnet", NULL},
                             *const elements[] = {"f32", "bf16", NULL},
                             *const products[] = {"kernels", "cublas", NULL};
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    if (p->passes == 0)
        p->passes = p->program == WEIR_TRAIN_ACCUMULATE ? 4 : 1;
    p->network = (weir_train_network)cli_choose("network", o->network, networks);
    p->element = (weir_train_element)cli_choose("element", o->element, elements);
    p->products = (weir_train_products)cli_choose("products", o->products, products);
    take_optimizer(command);
    take_buckets(command);
    take_checkpoint(command);
}

// What a training run prints: its figures, and its losses as a plot.

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

// The steps in groups, each with its mean and its range.
static void add_curve(struct cli_plot *plot, const char *name, const float *values, uint64_t steps)
{
    struct cli_plot_series *series = cli_plot_series(plot, name);
    const uint64_t groups = steps < CLI_PLOT_POINTS_MAX ? steps : CLI_PLOT_POINTS_MAX;
    for (uint64_t i = 0; i < groups; i++) {
        const uint64_t first = i * steps / groups, end = (i + 1) * steps / groups;
        struct cli_plot_point point = {.x = (double)(first + end + 1) / 2,
                                       .low = INFINITY,
                                       .high = -INFINITY};
        for (uint64_t k = first; k < end; k++) {
            point.y += (double)values[k];
            point.low = fmin(point.low, (double)values[k]);
            point.high = fmax(point.high, (double)values[k]);
        }
        point.y /= (double)(end - first);
        cli_plot_add(series, point);
    }
}

static void draw(const struct train_command *command)
{
    const struct weir_train_figures *figures = &command->figures;
    struct cli_plot *plot = cli_allocate(1, sizeof *plot);
    snprintf(plot->title, sizeof plot->title, "weir train %s", command->program->name);
    snprintf(plot->subtitle, sizeof plot->subtitle,
             "%" PRIu64 " samples a step, %u rank%s; lines: least and largest of a group of steps",
             figures->samples, weir_comm_count(command->comm),
             plural(weir_comm_count(command->comm)));
    snprintf(plot->x_name, sizeof plot->x_name, "step");
    snprintf(plot->y_name, sizeof plot->y_name, "mean over the samples");
    add_curve(plot, "loss", figures->losses, figures->steps);
    add_curve(plot, "classified right", figures->right, figures->steps);
    cli_plot_write(plot, command->options.curve);
}

// The figures of a run, as text and as JSON.

// But for the first step.
static double per_second(const struct weir_train_figures *f)
{
    return f->wall_ns ? (double)(f->steps - f->first_step - 1) * 1e9 / (double)f->wall_ns : 0;
}

static void add_sizes(struct weir_table *table, const struct train_command *command)
{
    const struct weir_train_figures *f = &command->figures;
    const struct weir_train_run_params *p = &command->params;
    const uint32_t ranks = weir_comm_count(command->comm);
    weir_table_add(table, "device");
    weir_table_add(table, "%s, module %s", weir_device_get_info(command->device)->name,
                   weir_runtime_backend(command->runtime));
    weir_table_add(table, "model\t%s, %zu parameters, %s",
                   p->network == WEIR_TRAIN_MLP ? "mlp" : "convnet", f->parameters,
                   p->element == WEIR_TRAIN_BF16 ? "bf16" : "f32");
    weir_table_add(table,
                   "step\t%" PRIu64 " samples: %u rank%s, %" PRIu64 " pass%s, %" PRIu64
                   " samples each",
                   f->samples, ranks, plural(ranks), p->passes, p->passes == 1 ? "" : "es",
                   p->batch);
}

static void add_losses(struct weir_table *table, const struct weir_train_figures *f)
{
    weir_table_add(table, "steps");
    if (f->steps > f->first_step)
        weir_table_add(table, "%" PRIu64 " to %" PRIu64, f->first_step + 1, f->steps);
    else
        weir_table_add(table, "none: the checkpoint has all %" PRIu64, f->steps);
    weir_table_add(table, "loss\t%.4g at first, %.4g at last", (double)f->losses[0],
                   (double)f->losses[f->steps - 1]);
    weir_table_add(table, "right\t%.1f %% of the samples at last",
                   100 * (double)f->right[f->steps - 1]);
}

static void add_times(struct weir_table *table, const struct weir_train_figures *f)
{
    if (f->wall_ns == 0)
        return;
    weir_table_add(table, "time\t%s for all steps but the first: %.1f steps/s, %.0f samples/s",
                   weir_text_duration((double)f->wall_ns).text, per_second(f),
                   per_second(f) * (double)f->samples);
    if (f->checkpoint_ns > 0)
        weir_table_add(table, "checkpoints\t%s of that",
                       weir_text_duration((double)f->checkpoint_ns).text);
}

static void add_gradients(struct weir_table *table, const struct weir_train_figures *f)
{
    const double steps = (double)f->buckets.timed_steps;
    weir_table_add(table, "gradients\t%s in %u bucket%s", weir_text_bytes(f->plan.bytes).text,
                   f->plan.bucket_count, plural(f->plan.bucket_count));
    if (f->buckets.timed_steps == 0)
        return;
    weir_table_add(table, "reduction\t%s of a step hidden, %s exposed",
                   weir_text_duration((double)f->buckets.hidden_ns / steps).text,
                   weir_text_duration((double)f->buckets.exposed_ns / steps).text);
}

static void print_table(const struct train_command *command)
{
    const struct weir_train_figures *f = &command->figures;
    struct weir_table table = {.alignment = "ll"};
    add_sizes(&table, command);
    add_losses(&table, f);
    add_times(&table, f);
    add_gradients(&table, f);
    if (f->loader.waits > 0)
        weir_table_add(&table, "batches\t%" PRIu64 " of %" PRIu64 " were waited for, %s in all",
                       f->loader.waits, f->loader.delivered,
                       weir_text_duration((double)f->loader.wait_ns).text);
    weir_table_add(&table, "digest\t%016" PRIx64 " of the parameters", f->parameters_digest);
    cli_table_print(&table, stdout, 0);
}

// JSON.

static json_t *values(const float *numbers, uint64_t count)
{
    json_t *list = json_array();
    for (uint64_t i = 0; i < count; i++)
        cli_json_append(list, json_real((double)numbers[i]));
    return list;
}

static json_t *buckets(const struct weir_train_figures *f)
{
    json_t *object = json_object();
    cli_json_set(object, "count", weir_json_count(f->plan.bucket_count));
    cli_json_set(object, "bytes", weir_json_count(f->plan.bytes));
    cli_json_set(object, "cap_bytes", weir_json_count(f->plan.cap_bytes));
    cli_json_set(object, "first_bytes", weir_json_count(f->plan.first_bytes));
    cli_json_set(object, "reductions", weir_json_count(f->buckets.reductions));
    cli_json_set(object, "reduced_bytes", weir_json_count(f->buckets.reduced_bytes));
    cli_json_set(object, "timed_steps", weir_json_count(f->buckets.timed_steps));
    cli_json_set(object, "hidden_ns", weir_json_count(f->buckets.hidden_ns));
    cli_json_set(object, "exposed_ns", weir_json_count(f->buckets.exposed_ns));
    return object;
}

static json_t *loader(const struct weir_train_figures *f)
{
    json_t *object = json_object();
    cli_json_set(object, "delivered", weir_json_count(f->loader.delivered));
    cli_json_set(object, "waits", weir_json_count(f->loader.waits));
    cli_json_set(object, "wait_ns", weir_json_count(f->loader.wait_ns));
    return object;
}

static void set_figures(json_t *root, const struct weir_train_figures *f)
{
    cli_json_set(root, "parameters", weir_json_count(f->parameters));
    cli_json_set(root, "parameters_digest", json_sprintf("%016" PRIx64, f->parameters_digest));
    cli_json_set(root, "samples", weir_json_count(f->samples));
    cli_json_set(root, "first_step", weir_json_count(f->first_step));
    cli_json_set(root, "steps", weir_json_count(f->steps));
    cli_json_set(root, "flop", json_real(f->flop));
    cli_json_set(root, "wall_ns", weir_json_count(f->wall_ns));
    cli_json_set(root, "checkpoint_ns", weir_json_count(f->checkpoint_ns));
    cli_json_set(root, "steps_per_second", json_real(per_second(f)));
    cli_json_set(root, "buckets", buckets(f));
    cli_json_set(root, "loader", loader(f));
    cli_json_set(root, "losses", values(f->losses, f->steps));
    cli_json_set(root, "right", values(f->right, f->steps));
}

static int tell(const struct train_command *command)
{
    if (weir_comm_rank(command->comm) > 0)
        return CLI_OK;
    if (command->options.curve)
        draw(command);
    if (!command->options.json) {
        if (!cli_quiet)
            print_table(command);
        return CLI_OK;
    }
    json_t *root = json_object();
    const char *device = weir_device_get_info(command->device)->name;
    cli_json_set(root, "weir", json_string(weir_version()));
    cli_json_set(root, "program", json_string(command->program->name));
    cli_json_set(root, "module", cli_json_string(weir_runtime_backend(command->runtime)));
    cli_json_set(root, "device", cli_json_string(device));
    cli_json_set(root, "ranks", weir_json_count(weir_comm_count(command->comm)));
    cli_json_set(root, "serial", json_boolean(command->params.serial));
    set_figures(root, &command->figures);
    return cli_json_print(root, CLI_OK);
}

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

static weir_status make_data(struct train_command *command)
{
    const struct train_options *o = &command->options;
    const bool colours = command->params.program == WEIR_TRAIN_AUGMENT;
    const uint32_t side = (uint32_t)(o->side ? o->side : colours ? 32 : 16);
    const weir_train_data made = {
        .shape = {.height = side, .width = side, .channels = colours ? 3 : 1},
        .classes = MADE_CLASSES,
        .count = MADE_COUNT,
        .seed = command->params.seed,
        .noise = MADE_NOISE,
    };
    return weir_train_data_make(&made, &command->data);
}

// A rank that lacks its data tells the others, so it joins them first.
static weir_status prepare_data(struct train_command *command)
{
    const char *folder = command->options.data;
    const weir_status status =
        folder
            ? weir_train_data_open(cli_text("%s/train-images-idx3-ubyte", folder),
                                   cli_text("%s/train-labels-idx1-ubyte", folder), &command->data)
            : make_data(command);
    if (status == WEIR_OK)
        return WEIR_OK;
    const struct weir_error cause = *weir_last_error();
    WEIR_IGNORE(weir_comm_abort(command->comm, cause.message));
    return weir_error_set(&cause);
}

static void close_all(void *object)
{
    struct train_command *command = object;
    if (command->refusal)
        WEIR_IGNORE(weir_comm_abort(command->comm, command->refusal));
    weir_comm_destroy(&command->comm);
    weir_train_data_destroy(&command->data);
    weir_train_figures_finish(&command->figures);
}

// Of ranks on one machine each takes a device of its own, as far as there are enough.
static void open_all(struct train_command *command)
{
    struct cli_devices devices;
    const char *wanted = command->options.device;
    command->runtime = cli_open(command->options.config);
    cli_devices_of_rank(command->runtime, &devices);
    if (!wanted && devices.count > 0)
        wanted = cli_text("%" PRIu32, devices.indices[0]);
    command->device = cli_device(command->runtime, wanted, "train");
    cli_own(close_all, command);
    if (weir_comm_create(command->device, WEIR_PARAMS(weir_comm, .label = "train"),
                         &command->comm) != WEIR_OK ||
        prepare_data(command) != WEIR_OK)
        cli_end(tell_error());
    command->params.comm = command->comm;
    command->params.data = command->data;
}

// Running.

static void show_progress(void *user, uint64_t step, float loss)
{
    struct train_command *command = user;
    char text[48];
    snprintf(text, sizeof text, "loss %.4g", (double)loss);
    cli_progress_update(&command->progress, step, text);
}

static int run(struct train_command *command)
{
    const char *folder = command->options.checkpoint;
    const bool first = weir_comm_rank(command->comm) == 0;
    if (first) {
        command->refusal = "rank 0 cannot write its files";
        if (folder && mkdir(folder, 0777) != 0 && errno != EEXIST)
            cli_fail(CLI_FAILED,
                     "%s cannot be made: %s; make the folder above it first, or name another with "
                     "--checkpoint",
                     folder, strerror(errno));
        cli_need_writable(command->options.curve);
        command->refusal = NULL;
    }
    command->params.progress = show_progress;
    command->params.user = command;
    cli_progress_start(&command->progress, first, command->params.steps, "steps/s");
    const weir_status status = weir_train_run(&command->params, &command->figures);
    cli_progress_end(&command->progress);
    return status == WEIR_OK ? tell(command) : tell_error();
}

// argv[0] is the program's name.
int cli_train(int argc, char **argv)
{
    static struct train_command command;
    const struct program *program = programs;
    while (strcmp(program->name, argv[0]) != 0)
        program++;
    command = (struct train_command){
        .program = program,
        .options = {.network = program->network,
                    .element = "f32",
                    .products = "kernels",
                    .optimizer = "sgd",
                    .wire = "f32"},
        .params = {.program = program->program,
                   .steps = 200,
                   .batch = 32,
                   .seed = 1,
                   .hidden = 2,
                   .width = 256,
                   .channels = 8},
    };
    train_parse(&command, argc, argv);
    take_options(&command);
    cli_log_to_stderr();
    cli_signals_start();
    open_all(&command);
    return run(&command);
}
