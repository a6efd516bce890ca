export function makeEvaluate() { const element = document.createElement("section"); return { element, open() {} }; }
