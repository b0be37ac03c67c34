// Express reads these when it is loaded. Holdfast reads bodies itself, within a budget, and the parsers would load zlib and qs.
module.exports = {};
