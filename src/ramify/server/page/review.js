export function makeReview() { const element = document.createElement("section"); return { element, open() {} }; }
