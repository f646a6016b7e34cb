// Opens the null backend from the default directories and prints where it was.
#include <stdio.h>

#include <weir/weir.h>

int main(void)
{
    weir_runtime *runtime;
    const struct weir_open_params params = {
        .struct_size = sizeof params,
        .config_path = "",
        .backend = "null",
    };

    if (weir_open(&params, &runtime) != WEIR_OK) {
        fprintf(stderr, "%s\n", weir_last_error_text());
        return 1;
    }
    printf("%s", weir_load_report_text(weir_runtime_report(runtime)));
    return weir_close(&runtime) == WEIR_OK ? 0 : 1;
}
