// Run in a page of its own: opens pages of the site in a frame of two widths, and searches. Of the reference,
// whose pages Doxygen makes alike, one in eight is opened.
const widths = [390, 1280];
const outcome = [];
// Of modules, of the kit, of C++ and of the manual.
const wantedPages = ["module_8h.html", "module_2error_8h.html", "kit_2error_8h.html", "weir_8hpp.html",
    "classweir_1_1queue.html", "man-weir-trace.html"];

const isOpened = (url, index) => wantedPages.includes(url) || !/^(struct|class|union|functions|globals)|_8h/.test(url) ||
    index % 8 === 0;

function open(url, width) {
    return new Promise((resolve) => {
        const frame = document.createElement("iframe");
        frame.width = width;
        frame.height = 800;
        frame.onload = () => resolve(frame);
        frame.src = url;
        document.body.append(frame);
    });
}

// Waits until a condition holds; false if it never does.
async function becomes(condition) {
    for (let i = 0; i < 200 && !condition(); i++)
        await new Promise((resolve) => setTimeout(resolve, 50));
    return condition();
}

async function checkWidths(url) {
    // What is too wide is so on the narrow screen; the wide one differs in the list of pages.
    for (const width of url === "index.html" || wantedPages.includes(url) ? widths : [widths[0]]) {
        const frame = await open(url, width);
        const root = frame.contentDocument.documentElement;
        if (root.scrollWidth > frame.clientWidth)
            outcome.push(`${url} is ${root.scrollWidth} pixels wide in ${width}`);
        if (!frame.contentDocument.title)
            outcome.push(`${url} has no title`);
        const list = frame.contentDocument.getElementById("list");
        if (list && (list.offsetHeight > 0) !== (width >= 900))
            outcome.push(`${url}: the list of pages is ${list.offsetHeight} pixels high at ${width}`);
        if (list && width < 900) {
            frame.contentDocument.getElementById("unfold").click();
            if (list.offsetHeight === 0)
                outcome.push(`${url}: the list of pages does not unfold`);
        }
        frame.remove();
    }
}

// Doxygen 1.9.8 finds a name with a hyphen by the name with a space.
async function checkSearch(word, typed = word) {
    const frame = await open("index.html", 1280);
    const field = frame.contentDocument.getElementById("MSearchField");
    field.value = typed;
    const box = frame.contentWindow.eval("searchBox"); // `let` in Doxygen 1.17
    box.OnSearchFieldFocus(true);
    box.Search();
    const found = () => {
        const box = frame.contentDocument.getElementById("MSearchResults");
        const results = box instanceof frame.contentWindow.HTMLIFrameElement ? box.contentDocument : box; // Doxygen 1.9.4
        return [...(results?.querySelectorAll(".SRResult") ?? [])].some(
            (row) => row.style.display === "block" && row.textContent.includes(word));
    };
    const isThere = await becomes(found);
    frame.remove();
    if (!isThere && typed.includes("-"))
        await checkSearch(word, typed.replace("-", " "));
    else if (!isThere)
        outcome.push(`the search for ${word} finds nothing`);
}

async function check() {
    const opened = pageNames.filter(isOpened);
    for (const url of opened)
        await checkWidths(url);
    for (const url of wantedPages)
        if (!pageNames.includes(url))
            outcome.push(`there is no ${url}`);
    for (const word of ["weir_queue_copy_2d", "weir_module_query", "weir_kit_format", "weir-trace", "elapsed_ns"])
        await checkSearch(word);
    return opened.length;
}

async function main() {
    const opened = await check().catch((error) => outcome.push(`${error}`));
    const text = document.createElement("pre");
    text.id = "outcome";
    text.textContent = outcome.length ? outcome.join("\n") : `passed: ${opened} of ${pageNames.length} pages at ${widths.join(" and ")}`;
    document.body.append(text);
}

main();
