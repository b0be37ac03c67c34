// prom-client asks for the trace of a measurement only if exemplars are enabled, which they are not.
module.exports = { context: { active: () => undefined }, trace: { getSpan: () => undefined } };
