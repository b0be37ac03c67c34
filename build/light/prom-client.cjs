// Metrics and the default ones. The rest of the package would load zlib and more of Node's modules in each process.
const Counter = require('../../node_modules/prom-client/lib/counter.js');
const collectDefaultMetrics = require('../../node_modules/prom-client/lib/defaultMetrics.js');
const Gauge = require('../../node_modules/prom-client/lib/gauge.js');
const Histogram = require('../../node_modules/prom-client/lib/histogram.js');
const Registry = require('../../node_modules/prom-client/lib/registry.js');

module.exports = { Counter, Gauge, Histogram, Registry, collectDefaultMetrics };
