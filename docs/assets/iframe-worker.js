// Pages that were opened as files may not start workers, and the search is one: there it runs in a hidden frame instead.
// The generator would fetch a script for that from another host.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = []; // messages until the script is there
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "search";
      this.frame.srcdoc = "<!doctype html>";
      this.frame.addEventListener("load", () => this.start(String(address)), { once: true });
      document.body.append(this.frame);
    }

    start(address) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.tell(new MessageEvent("message", { data: structuredClone(data) }));
      const script = inside.document.createElement("script");
      script.addEventListener("load", () => {
        this.inside = inside;
        for (const data of this.waiting.splice(0)) this.postMessage(data);
      });
      script.addEventListener("error", () => this.tell(new ErrorEvent("error", { message: `cannot load ${address}` })));
      script.src = address;
      inside.document.head.append(script);
    }

    tell(event) {
      this[`on${event.type}`]?.(event);
      this.dispatchEvent(event);
    }

    postMessage(told) {
      const data = structuredClone(told); // as between a page and a worker: neither sees what the other changes
      if (this.inside) setTimeout(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
      else this.waiting.push(data);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
