// Run in a page of its own: opens every page of the site in a frame of two widths, and searches.
const widths = [390, 1280];
const outcome = [];

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
    // Structures' pages are alike.
    for (const width of url.startsWith("struct") ? [widths[0]] : widths) {
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

async function checkSearch() {
    const frame = await open("index.html", 1280);
    const field = frame.contentDocument.getElementById("MSearchField");
    field.value = "weir_queue_copy_2d";
    frame.contentWindow.searchBox.OnSearchFieldFocus(true);
    frame.contentWindow.searchBox.Search();
    const found = () => {
        const results = frame.contentDocument.getElementById("MSearchResults").contentDocument;
        return [...(results?.querySelectorAll(".SRResult") ?? [])].some(
            (row) => row.style.display === "block" && row.textContent.includes("weir_queue_copy_2d"));
    };
    if (!(await becomes(found)))
        outcome.push("the search for weir_queue_copy_2d finds nothing");
}

async function main() {
    for (const url of pageNames)
        await checkWidths(url);
    await checkSearch();
    const text = document.createElement("pre");
    text.id = "outcome";
    text.textContent = outcome.length ? outcome.join("\n") : `passed: ${pageNames.length} pages at ${widths.join(" and ")}`;
    document.body.append(text);
}

main();
