// A pasted picture is handed to the page's file uploader, which treats it like a dropped file. Files
// that are too large never reach the uploader, which would list them: Python says what is wrong.

const UPLOADER = '[data-testid="stFileUploader"]';
const heard = { data: null, setTriggerValue: null };

export default function (component) {
  Object.assign(heard, component);
  document.addEventListener("paste", paste); // adding the same function again changes nothing
  document.addEventListener("change", refuse, { capture: true });
  document.addEventListener("drop", refuse, { capture: true });
  return () => {
    document.removeEventListener("paste", paste);
    document.removeEventListener("change", refuse, { capture: true });
    document.removeEventListener("drop", refuse, { capture: true });
  };
}

function paste(event) {
  const file = [...(event.clipboardData?.files ?? [])].find((f) => f.type.startsWith("image/"));
  const input = document.querySelector(`${UPLOADER} input[type="file"]`);
  if (!file || !input) return;
  event.preventDefault();
  const files = new DataTransfer();
  files.items.add(file);
  input.files = files.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

function refuse(event) {
  if (!event.target.closest?.(UPLOADER)) return;
  const files = (event.dataTransfer ?? event.target).files ?? [];
  const large = [...files].find((file) => file.size > heard.data.most);
  if (!large) return;
  event.stopPropagation();
  event.preventDefault();
  if (event.type === "change") event.target.value = ""; // so that it can be chosen again
  else event.target.dispatchEvent(new DragEvent("dragleave", { bubbles: true }));
  heard.setTriggerValue("refused", large.name);
}
