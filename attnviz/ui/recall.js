// The server's numbers are handed back to it at each move: so one that was started again knows them.

let kept = "0,0";

export default function ({ data, setStateValue }) {
  if (data === null || String(data) === kept) return;
  kept = String(data);
  setStateValue("numbers", data);
}
