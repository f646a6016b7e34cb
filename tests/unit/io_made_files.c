// The libraries' default error handling is left in place: a file that cannot be made
// is an error in the test, and stopping is correct.
#include "tests/unit/io_made_files.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <jpeglib.h>
#include <png.h>

#include "base/file.h"

static void set_transparency(png_structp file, png_infop info, const struct made_png *png)
{
    if (png->palette_alpha)
        png_set_tRNS(file, info, png->palette_alpha, png->palette_alpha_count, NULL);
    if (png->transparent) {
        png_color_16 colour = {0};
        colour.gray = png->transparent[0];
        if (png->colour_type == PNG_COLOR_TYPE_RGB) {
            colour.red = png->transparent[0];
            colour.green = png->transparent[1];
            colour.blue = png->transparent[2];
        }
        png_set_tRNS(file, info, NULL, 0, &colour);
    }
}

bool made_png_write(const char *path, const struct made_png *png)
{
    FILE *stream = fopen(path, "wb");
    png_structp file = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(file);
    if (!stream || !file || !info)
        return false;
    png_init_io(file, stream);
    png_set_IHDR(file, info, png->width, png->height, png->bit_depth, png->colour_type,
                 png->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (png->palette)
        png_set_PLTE(file, info, (png_const_colorp)(const void *)png->palette, png->palette_count);
    set_transparency(file, info, png);
    if (png->gamma > 0)
        png_set_gAMA(file, info, png->gamma);
    png_bytepp rows = calloc(png->height, sizeof *rows);
    if (!rows)
        return false;
    for (uint32_t y = 0; y < png->height; y++)
        rows[y] = (png_bytep)(png->rows + y * png->row_bytes);
    png_write_info(file, info);
    png_write_image(file, rows);
    png_write_end(file, NULL);
    png_destroy_write_struct(&file, &info);
    free(rows);
    return fclose(stream) == 0;
}

enum {
    COEFFICIENTS = 63, // besides the first
    MOST_STEPS = 8
};

// Sets the script of scans that `steps` asks for; it must live as long as `cinfo`.
static void set_scans(struct jpeg_compress_struct *cinfo, int steps, jpeg_scan_info *scans)
{
    int count = 0;
    scans[count++] = (jpeg_scan_info){.comps_in_scan = 1};
    for (int k = 1; k <= COEFFICIENTS; k++)
        for (int step = 0; step < steps; step++)
            scans[count++] = (jpeg_scan_info){
                .comps_in_scan = 1,
                .Ss = k,
                .Se = k,
                .Ah = step ? steps - step : 0,
                .Al = steps - step - 1,
            };
    cinfo->scan_info = scans;
    cinfo->num_scans = count;
}

bool made_jpeg_write_scans(const char *path, const struct made_jpeg *jpeg, int steps)
{
    static const J_COLOR_SPACE spaces[] = {JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN, JCS_RGB,
                                           JCS_CMYK};
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    jpeg_scan_info scans[1 + COEFFICIENTS * MOST_STEPS];
    FILE *stream = fopen(path, "wb");
    if (!stream)
        return false;
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_stdio_dest(&cinfo, stream);
    cinfo.image_width = jpeg->width;
    cinfo.image_height = jpeg->height;
    cinfo.input_components = jpeg->channels;
    cinfo.in_color_space = spaces[jpeg->channels];
    jpeg_set_defaults(&cinfo);
    jpeg_set_quality(&cinfo, jpeg->quality, TRUE);
    cinfo.comp_info[0].h_samp_factor = 1;
    cinfo.comp_info[0].v_samp_factor = 1;
    if (jpeg->progressive)
        jpeg_simple_progression(&cinfo);
    if (steps > 0)
        set_scans(&cinfo, steps, scans);
    jpeg_start_compress(&cinfo, TRUE);
    size_t row_bytes = (size_t)jpeg->width * (size_t)jpeg->channels;
    while (cinfo.next_scanline < cinfo.image_height) {
        JSAMPROW row = (JSAMPROW)(jpeg->pixels + cinfo.next_scanline * row_bytes);
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    return fclose(stream) == 0;
}

bool made_jpeg_write(const char *path, const struct made_jpeg *jpeg)
{
    return made_jpeg_write_scans(path, jpeg, 0);
}

bool made_file_write(const char *path, const void *bytes, size_t size)
{
    FILE *stream = fopen(path, "wb");
    if (!stream)
        return false;
    bool ok = size == 0 || fwrite(bytes, 1, size, stream) == size;
    return fclose(stream) == 0 && ok;
}

unsigned char *made_file_read(const char *path, size_t *out_size)
{
    char message[512];
    void *bytes;
    (void)weir_file_read(path, SIZE_MAX, &bytes, out_size, message, sizeof message);
    return bytes;
}

const char *made_path(const char *folder, const char *name)
{
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

int made_folder_count(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return -1;
    int count = 0;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

bool made_disk_limit(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return false;
    limit.rlim_cur = bytes > 0 ? (rlim_t)bytes : limit.rlim_max;
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}
