// The command line. Programs have most options in common, and a few of their own.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/options.h"
#include "cli/train/train.h"

enum {
    OPTIONS_MAX = 32,
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

static const struct program *program_of(weir_train_program program)
{
    return &programs[program - WEIR_TRAIN_DDP];
}

const char *train_program_name(weir_train_program program)
{
    return program_of(program)->name;
}

// Stores the options of the program, and returns how many there are.
static size_t list_options(struct train_options *o, struct cli_option options[OPTIONS_MAX])
{
    const struct cli_option all[] = {
        {"batch", "N", "samples of a pass on each rank; without it, 32", CLI_COUNT, &o->batch, 1,
         WEIR_TRAIN_BATCH_MAX},
        {"buckets", "SIZE", "the largest bucket of gradients in MiB, or auto;\nwithout it, 25",
         CLI_TEXT, &o->buckets, 0, 0},
        {"channels", "N", "of a convnet's first layer; without it, 8", CLI_COUNT, &o->channels, 1,
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
        {"every", "N", "a checkpoint every N steps; without it, at the end", CLI_COUNT, &o->every,
         1, WEIR_TRAIN_STEPS_MAX},
        {"hidden", "N", "hidden layers of an mlp; without it, 2", CLI_COUNT, &o->hidden, 0,
         WEIR_TRAIN_LAYERS_MAX - 1},
        {"json", NULL, "print the figures as JSON", CLI_FLAG, &o->json, 0, 0},
        {"momentum", "M", "of sgd; without it, 0.9", CLI_TEXT, &o->momentum, 0, 0},
        {"network", "N", "mlp or convnet; without it, mlp for ddp and accumulate,\nelse convnet",
         CLI_TEXT, &o->network, 0, 0},
        {"optimizer", "O", "sgd or adam; without it, sgd", CLI_TEXT, &o->optimizer, 0, 0},
        {"passes", "N", "passes of a step; without it, 1, of accumulate 4", CLI_COUNT, &o->passes,
         1, WEIR_TRAIN_PASSES_MAX},
        {"products", "P", "kernels, or cublas, on CUDA; without it, kernels", CLI_TEXT,
         &o->products, 0, 0},
        {"quiet", NULL, "print errors and nothing else", CLI_FLAG, &o->quiet, 0, 0},
        {"rate", "R", "of learning; without it, 0.02, of adam 0.001", CLI_TEXT, &o->rate, 0, 0},
        {"resume", NULL, "go on after the checkpoint, if there is one", CLI_FLAG, &o->resume, 0, 0},
        {"seed", "N", "of parameters, data and order; without it, 1", CLI_COUNT, &o->seed, 0,
         UINT32_MAX},
        {"serial", NULL, "one thing after the other", CLI_FLAG, &o->serial, 0, 0},
        {"side", "N", "pixels of a made image's side; without it, 16, of\naugment 32", CLI_COUNT,
         &o->side, 1, SIDE_MAX},
        {"steps", "N", "how many, with those before a resumption; without it,\n200", CLI_COUNT,
         &o->steps, 1, WEIR_TRAIN_STEPS_MAX},
        {"width", "N", "units of a hidden layer, features of encdec; without\nit, 256", CLI_COUNT,
         &o->width, 1, WIDTH_MAX},
        {"wire", "E", "f32, or bf16, which gradients are rounded to on their\nway; without it, f32",
         CLI_TEXT, &o->wire, 0, 0},
        // augment has the last two, the other programs the one before them.
        {"exact", NULL,
         "integers as inputs, and rounded activations: the same\nbits for any count of ranks",
         CLI_FLAG, &o->exact, 0, 0},
        {"crop", "N", "cut out N x N pixels; without it, seven eighths", CLI_COUNT, &o->crop, 1,
         SIDE_MAX},
        {"on-host", NULL, "augment on the host, as batches are loaded", CLI_FLAG, &o->on_host, 0,
         0},
    };
    const size_t count = sizeof all / sizeof *all;
    memcpy(options, all, sizeof all);
    if (o->program != WEIR_TRAIN_AUGMENT)
        return count - 2;
    memmove(&options[count - 3], &options[count - 2], 2 * sizeof *options);
    return count - 1;
}

bool train_parse(struct train_command *command, int argc, char **argv, int *out_exit)
{
    struct train_options *o = &command->options;
    struct cli_option options[OPTIONS_MAX];
    char name[64];
    const size_t count = list_options(o, options);
    snprintf(name, sizeof name, "weir train %s", train_program_name(o->program));
    const struct cli_usage usage = {
        .command = name,
        .operands = "",
        .about = program_of(o->program)->about,
        .manual = "weir-train(1)",
        .options = options,
        .option_count = count,
    };
    size_t operands;
    return cli_parse(&usage, argc, argv, &operands, out_exit);
}

// Words and numbers.

// A number from `minimum`, or above it with `beyond`, and below `maximum`.
static bool is_number(const char *text, double minimum, bool beyond, double maximum, float *out)
{
    char *end;
    const double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(value < maximum) ||
        !(beyond ? value > minimum : value >= minimum))
        return false;
    *out = (float)value;
    return true;
}

static bool read_number(const char *option, const char *text, double minimum, bool beyond,
                        double maximum, float *out)
{
    if (is_number(text, minimum, beyond, maximum, out))
        return true;
    cli_error("--%s takes a number %s %g and below %g, not '%s'", option, beyond ? "above" : "from",
              minimum, maximum, text);
    return false;
}

static bool take_model(struct train_command *command)
{
    static const char *const networks[] = {"mlp", "convnet", NULL},
                             *const elements[] = {"f32", "bf16", NULL},
                             *const products[] = {"kernels", "cublas", NULL};
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    size_t network, element, product;
    if (!cli_pick("network", o->network ? o->network : program_of(o->program)->network, networks,
                  &network) ||
        !cli_pick("element", o->element ? o->element : "f32", elements, &element) ||
        !cli_pick("products", o->products ? o->products : "kernels", products, &product))
        return false;
    p->network = (weir_train_network)network;
    p->element = (weir_train_element)element;
    p->products = (weir_train_products)product;
    p->hidden = (uint32_t)o->hidden;
    p->width = (uint32_t)o->width;
    p->channels = (uint32_t)o->channels;
    return true;
}

static bool take_optimizer(struct train_command *command)
{
    static const char *const methods[] = {"sgd", "adam", NULL};
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    size_t method;
    if (!cli_pick("optimizer", o->optimizer ? o->optimizer : "sgd", methods, &method))
        return false;
    p->method = method ? WEIR_TRAIN_ADAM : WEIR_TRAIN_SGD;
    const char *rate = o->rate ? o->rate : method ? "0.001" : "0.02";
    if (method && o->momentum) {
        cli_error("--momentum is of sgd, and adam has none; leave it out");
        return false;
    }
    return read_number("rate", rate, 0, true, 1e6, &p->rate) &&
           read_number("momentum", o->momentum ? o->momentum : "0.9", 0, false, 1, &p->momentum);
}

static bool take_buckets(struct train_command *command)
{
    static const char *const wires[] = {"f32", "bf16", NULL};
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    float mib;
    size_t wire;
    if (!cli_pick("wire", o->wire ? o->wire : "f32", wires, &wire))
        return false;
    p->wire = wire ? WEIR_BF16 : WEIR_F32;
    if (!o->buckets)
        return true;
    if (strcmp(o->buckets, "auto") == 0) {
        p->bucket_bytes = WEIR_BUCKETS_AUTO;
        return true;
    }
    if (!is_number(o->buckets, 0, true, BUCKET_MIB_MAX, &mib)) {
        cli_error("--buckets takes auto, or MiB above 0 and below %d, not '%s'", BUCKET_MIB_MAX,
                  o->buckets);
        return false;
    }
    p->bucket_bytes = (size_t)ceil((double)mib * MIB);
    return true;
}

static bool take_checkpoint(struct train_command *command)
{
    const struct train_options *o = &command->options;
    if (!o->checkpoint && (o->resume || o->every)) {
        cli_error("--%s needs a folder: --checkpoint DIR", o->resume ? "resume" : "every");
        return false;
    }
    if (!o->checkpoint)
        return true;
    const int length = snprintf(command->checkpoint, sizeof command->checkpoint,
                                "%s/checkpoint.safetensors", o->checkpoint);
    if (length < 0 || (size_t)length >= sizeof command->checkpoint) {
        cli_error(
            "the path of the file in --checkpoint is longer than %zu bytes; use a shorter one",
            sizeof command->checkpoint - 1);
        return false;
    }
    command->params.checkpoint = command->checkpoint;
    command->params.checkpoint_every = o->every;
    command->params.resume = o->resume;
    return true;
}

bool train_take_options(struct train_command *command)
{
    const struct train_options *o = &command->options;
    struct weir_train_run_params *p = &command->params;
    *p = (struct weir_train_run_params){
        .struct_size = sizeof *p,
        .program = o->program,
        .serial = o->serial,
        .steps = o->steps,
        .batch = (uint32_t)o->batch,
        .passes = (uint32_t)(o->passes                             ? o->passes
                             : o->program == WEIR_TRAIN_ACCUMULATE ? 4
                                                                   : 1),
        .seed = o->seed,
        .exact = o->exact,
        .crop_width = (uint32_t)o->crop,
        .crop_height = (uint32_t)o->crop,
        .augment_on_host = o->on_host,
    };
    return take_model(command) && take_optimizer(command) && take_buckets(command) &&
           take_checkpoint(command);
}
