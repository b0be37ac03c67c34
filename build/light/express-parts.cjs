// Express loads these when it is loaded. Holdfast reads bodies itself, within a budget; its processes send no files and ask Express for no type of an
// answer. They take longer to load than the rest of Express.
module.exports = {};
