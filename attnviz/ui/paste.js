// Pasted pictures are handed to the page's file uploader, which treats them like dropped files. Files
// that are too large, or too many, never reach the uploader, which would list them: Python says what
// is wrong, and the others go in as if they had come alone.

const UPLOADER = '[data-testid="stFileUploader"]';
const LISTED = '[data-testid="stFileChipName"]';
const PATIENCE = 4000; // milliseconds until a file that is not listed is handed over once more
const heard = { data: null, setTriggerValue: null, turn: 0 };

export default function (component) {
  Object.assign(heard, component);
  document.addEventListener("paste", paste); // adding the same function again changes nothing
  document.addEventListener("change", sift, { capture: true });
  document.addEventListener("drop", sift, { capture: true });
  const turn = (heard.turn += 1);
  return () => {
    if (turn !== heard.turn) return; // Streamlit may end a call that another has already followed
    document.removeEventListener("paste", paste);
    document.removeEventListener("change", sift, { capture: true });
    document.removeEventListener("drop", sift, { capture: true });
  };
}

function paste(event) {
  const files = [...(event.clipboardData?.files ?? [])].filter((f) => f.type.startsWith("image/"));
  if (files.length && hand(files)) event.preventDefault();
}

function hand(files) {
  const input = document.querySelector(`${UPLOADER} input[type="file"]`);
  if (!input) return false;
  const transfer = new DataTransfer();
  for (const file of files) transfer.items.add(file);
  input.files = transfer.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
  return true;
}

function sift(event) {
  const uploader = event.target.closest?.(UPLOADER);
  if (!uploader) return;
  const { size, count } = heard.data;
  const files = [...((event.dataTransfer ?? event.target).files ?? [])];
  const large = files.filter((file) => file.size > size);
  const fine = files.filter((file) => file.size <= size);
  if (!large.length && fine.length <= count) return watch(uploader, fine);
  event.stopPropagation();
  event.preventDefault();
  if (event.type === "change") event.target.value = ""; // so that it can be chosen again
  else event.target.dispatchEvent(new DragEvent("dragleave", { bubbles: true }));
  const coming = fine.slice(0, count);
  const names = large.map((file) => file.name);
  const told = [names, fine.length - coming.length, coming.length];
  const refuse = () => heard.setTriggerValue("refused", told);
  if (!coming.length) return refuse();
  watch(uploader, coming, refuse);
  hand(coming);
}

// The uploader asks the server where to put its files, and a run of the page that begins just then
// swallows the answer: pictures that it does not list are handed to it again, and `then` waits for
// them, as it makes the page run.
const again = new WeakMap(); // how often each file was

function watch(uploader, files, then = () => {}) {
  const waiting = files.filter((file) => file.type.startsWith("image/"));
  const end = () => {
    observer.disconnect();
    clearTimeout(timer);
    then();
  };
  const observer = new MutationObserver((records) => {
    const added = records.flatMap(({ addedNodes }) => [...addedNodes]);
    for (const { title } of added.flatMap((node) => [...(node.querySelectorAll?.(LISTED) ?? [])])) {
      const at = waiting.findIndex((file) => file.name === title);
      if (at >= 0) waiting.splice(at, 1);
    }
    if (!waiting.length) end();
  });
  const timer = setTimeout(() => {
    end();
    const lost = waiting.filter((file) => (again.get(file) ?? 0) < 2);
    for (const file of lost) again.set(file, (again.get(file) ?? 0) + 1);
    if (lost.length) hand(lost);
  }, PATIENCE);
  observer.observe(uploader, { childList: true, subtree: true });
}
