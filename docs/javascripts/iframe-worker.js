// The search runs in a worker, which browsers do not load from disk. There it runs in a hidden frame of the page.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.importScripts = (...urls) => Promise.all(urls.map((one) => this.load(one)));
      this.loaded = this.load(url);
    }

    load(url) {
      const script = this.scope.document.createElement("script");
      script.src = new URL(url, location.href);
      const loaded = new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
      this.scope.document.body.append(script);
      return loaded;
    }

    postMessage(data) {
      this.loaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
}
