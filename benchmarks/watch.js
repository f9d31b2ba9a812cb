// `window.watch` tells when the page last changed, whatever it is that changes, in every shadow.
// Times are in milliseconds by the page's own clock.
() => {
  if (window.watch) return;
  const watch = (window.watch = { pressed: null, ran: false, changed: 0, painted: 0, pictures: {} });
  const kinds = { subtree: true, childList: true, attributes: true, characterData: true };
  const seen = new WeakSet();

  // A task after the next frame began: by then the one with the change in it has been painted.
  const afterPaint = (then) => requestAnimationFrame(() => setTimeout(() => then(performance.now())));
  const changed = () => {
    watch.changed = performance.now();
    afterPaint((now) => (watch.painted = now));
  };
  const loaded = ({ target }) => {
    changed();
    const key = target.getRootNode().host?.closest("[class*=st-key-]")?.className;
    const name = key?.match(/st-key-([\w-]+)/)[1];
    if (target.localName === "img" && name) afterPaint((now) => (watch.pictures[name] = now));
  };
  const mutations = new MutationObserver((all) => {
    for (const { addedNodes } of all) addedNodes.forEach(lookInto);
    const state = "data-test-script-state";
    if (all.some((one) => one.attributeName === state && one.target.getAttribute(state) === "running"))
      watch.ran = true;
    changed();
  });
  const lookAt = (root) => {
    if (seen.has(root)) return;
    seen.add(root);
    mutations.observe(root, kinds);
    root.addEventListener("load", loaded, true);
  };
  const lookInto = (node) => {
    for (const each of [node, ...(node.querySelectorAll?.("*") ?? [])])
      if (each.shadowRoot) lookAt(each.shadowRoot);
  };
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (...how) {
    const root = attach.apply(this, how);
    lookAt(root);
    return root;
  };
  for (const kind of ["pointerdown", "keydown"])
    document.addEventListener(kind, (event) => (watch.pressed ??= event.timeStamp), true);
  lookAt(document);
  lookInto(document.body);
}
