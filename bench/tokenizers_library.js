// The figures of the tokenizers library beside tokenizer_bench's: processor time
// through its Node binding, one thread. Not part of any build.
//
//   npm install tokenizers && node tokenizers_library.js TOKENIZER.json TEXT
process.env.TOKENIZERS_PARALLELISM = 'false';
process.env.RAYON_NUM_THREADS = '1';
const {Tokenizer} = require('tokenizers');
const fs = require('fs');

function cpuSeconds() {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e6;
}

async function best(rounds, work) {
  let least = Infinity;
  for (let i = 0; i < rounds; ++i) {
    const start = cpuSeconds();
    await work();
    least = Math.min(least, cpuSeconds() - start);
  }
  return least;
}

async function main(path, textPath) {
  const text = fs.readFileSync(textPath, 'utf8');
  const megabytes = Buffer.byteLength(text) / 1e6;
  let tokenizer;
  const open = await best(5, () => { tokenizer = Tokenizer.fromFile(path); });
  let encoding;
  const encode = async () => {
    encoding = await tokenizer.encode(text, null, {addSpecialTokens: false});
  };
  const cold = await best(1, encode);
  const warm = await best(3, encode);
  const ids = encoding.getIds();
  const decode = await best(2, () => tokenizer.decode(ids, false));
  console.log(`${path}: ${ids.length} ids`);
  console.log(`open    ${(1e3 * open).toFixed(0)} ms`);
  console.log(`encode  ${(megabytes / warm).toFixed(2)} MB/s`);
  console.log(`cold    ${(megabytes / cold).toFixed(2)} MB/s`);
  console.log(`decode  ${(megabytes / decode).toFixed(2)} MB/s`);
}

main(process.argv[2], process.argv[3]);
