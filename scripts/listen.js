// From now on `window.asked` says whether a run of the page's script was asked for that has not begun
// yet (`waiting`), or that has not ended (`running`). Of itself a page knows that only from the
// server's answer on: just after a click it seems to rest. `kinds` are numbers of Streamlit's
// messages, in Protocol Buffers.
(kinds) => {
  if (window.asked) return;
  const asked = (window.asked = { waiting: false, running: false });
  const heard = new WeakSet();
  const send = WebSocket.prototype.send;

  WebSocket.prototype.send = function (data) {
    if (!heard.has(this)) {
      heard.add(this);
      this.addEventListener("message", ({ data }) => hear(new Uint8Array(data)));
      this.addEventListener("close", () => (asked.waiting = asked.running = false));
    }
    if (data instanceof Uint8Array && kindOf(data).kind === kinds.rerun) asked.waiting = true;
    return send.call(this, data);
  };

  function hear(bytes) {
    const { kind, value } = kindOf(bytes);
    if (kind === kinds.begun) asked.waiting = !(asked.running = true);
    if (kind === kinds.ended) asked.running = value === kinds.early; // another one follows at once
  }

  // The first field that is neither the message's hash (1) nor said of it (2), and a whole number
  // that it has: its value, or how long it is.
  function kindOf(bytes) {
    for (let at = 0; at < bytes.length;) {
      let tag, value;
      [tag, at] = number(bytes, at);
      [value, at] = number(bytes, at);
      if (tag >> 3 > 2) return { kind: tag >> 3, value };
      at += value;
    }
    return {};
  }

  function number(bytes, at) {
    let [value, unit] = [0, 1];
    for (; bytes[at] > 127; unit *= 128) value += (bytes[at++] & 127) * unit;
    return [value + bytes[at++] * unit, at];
  }
}
