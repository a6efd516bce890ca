// The beginning of a file, from which the server finds its encoding and columns.

const HEAD = 200_000; // bytes
const MORE = 50_000; // bytes of a later part
const FARTHEST = 256_000_000; // bytes to look at for a letter beyond ASCII
const LINE_END = 10;

/** {body, isCut}: the first bytes; where they are plain ASCII, also a later part that is not, which tells the encoding. */
export async function sampleOf(file) {
  const head = await bytesOf(file, 0, HEAD);
  const isCut = file.size > HEAD;
  if (!isCut || firstHigh(head) >= 0) return { body: head, isCut };
  for (let start = HEAD; start < Math.min(file.size, FARTHEST); start += HEAD) {
    const part = await bytesOf(file, start, HEAD);
    const high = firstHigh(part);
    if (high >= 0) return { body: new Blob([head, "\n", part.subarray(part.lastIndexOf(LINE_END, high) + 1).subarray(0, MORE)]), isCut };
  }
  return { body: head, isCut };
}

async function bytesOf(file, start, size) {
  return new Uint8Array(await file.slice(start, start + size).arrayBuffer());
}

function firstHigh(bytes) {
  return bytes.findIndex((byte) => byte > 127);
}
