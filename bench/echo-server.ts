import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import express from 'express';

// The baseline for an admission webhook in this runtime: TLS 1.3, and JSON in and out.
const [cert, key, port] = process.argv.slice(2);
const app = express();
app.post('/echo', express.json({ limit: '4mb' }), (request, response) => {
  response.json(request.body);
});
createServer({ cert: readFileSync(cert ?? ''), key: readFileSync(key ?? ''), minVersion: 'TLSv1.3' }, app).listen(
  Number(port),
  '127.0.0.1',
);
