// The search of a site that is opened from a disk. Browsers start no workers for pages of file://,
// so one is imitated by a hidden frame: it runs the worker's script, and messages go between it and
// the page. Pages that a server sends keep their browser's own workers.
if (window.location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      const page = inside.document;
      const prelude = page.createElement("script");
      prelude.textContent = "self.postMessage = (data) => parent.postMessage(data, '*');";
      const script = page.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      // What is sent before the script listens waits for it.
      this.ready = new Promise((resolve) => script.addEventListener("load", resolve));
      this.deliver = (data) => inside.dispatchEvent(new MessageEvent("message", { data }));
      this.terminate = () => frame.remove();
      page.body.append(prelude, script);
    }
    postMessage(data) {
      this.ready.then(() => this.deliver(data));
    }
  }
  // The theme looks for this name to find its scripts from inside the frame.
  window.IFrameWorker = FrameWorker;
  window.Worker = FrameWorker;
}
