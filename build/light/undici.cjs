// Agents, their connections and requests. The rest of the package, such as fetch, would be loaded in each process and is not used.
const Agent = require('../../node_modules/undici/lib/dispatcher/agent.js');
const Dispatcher = require('../../node_modules/undici/lib/dispatcher/dispatcher.js');
const buildConnector = require('../../node_modules/undici/lib/core/connect.js');
const request = require('../../node_modules/undici/lib/api/api-request.js');

Dispatcher.prototype.request = request;
module.exports = { Agent, buildConnector };
