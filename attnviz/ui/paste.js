// A pasted picture is handed to the page's file uploader, which treats it like a dropped file.

const FILE_INPUT = '[data-testid="stFileUploader"] input[type="file"]';

export default function () {
  document.addEventListener("paste", paste); // adding the same function again changes nothing
  return () => document.removeEventListener("paste", paste);
}

function paste(event) {
  const file = [...(event.clipboardData?.files ?? [])].find((f) => f.type.startsWith("image/"));
  const input = document.querySelector(FILE_INPUT);
  if (!file || !input) return;
  event.preventDefault();
  const files = new DataTransfer();
  files.items.add(file);
  input.files = files.files;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}
