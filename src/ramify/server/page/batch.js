export function makeBatch() { const element = document.createElement("section"); return { element, open() {} }; }
