// Run by `helm test` in a pod: asks the API server for the kinds, and sends it dry-run requests that must reach the webhooks.
/* global console, fetch, process */
import { readFile } from 'node:fs/promises';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
// As Kubernetes' clients find it: this does not test the DNS of the cluster.
const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port } = process.env;
const server = process.env.API_SERVER ?? `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
const token = await readFile(process.env.TOKEN_FILE ?? `${ACCOUNT}/token`, 'utf8');

async function request(method, path, body) {
  const headers = { authorization: `Bearer ${token.trim()}`, 'content-type': 'application/json' };
  const answer = await fetch(server + path, { method, headers, body: body && JSON.stringify(body) });
  return { status: answer.status, body: await answer.json() };
}

async function checkKinds(group, ...kinds) {
  const { status, body } = await request('GET', `/apis/${group}`);
  const served = (body.resources ?? []).map(({ kind }) => kind);
  const missing = kinds.filter((kind) => !served.includes(kind));
  if (missing.length > 0) throw new Error(`${group} (HTTP ${status}) lacks ${missing.join(', ')}: apply the CRDs`);
}

/** Without its configuration, a request would pass a webhook unnoticed. */
async function checkConfiguration(kind, name) {
  const { status } = await request('GET', `/apis/admissionregistration.k8s.io/v1/${kind}/${name}`);
  if (status !== 200) throw new Error(`${kind} ${name} cannot be read (HTTP ${status}): install the chart again`);
}

/** A webhook must answer the request; whether it or a policy then rejects the object does not matter. */
async function checkWebhook(name, path, object) {
  const { status, body } = await request('POST', `${path}?dryRun=All`, object);
  const words = body.message ?? '';
  if (status === 401 || (status === 403 && words.includes('cannot create')))
    throw new Error(`the test may not create objects at ${path}: ${words}`);
  if (words.includes('failed calling webhook') || words.includes('no endpoints')) throw new Error(`${name}: ${words}`);
}

const metadata = { name: 'holdfast-helm-test' };
const launcher = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    ...metadata,
    labels: { 'kubevirt.io': 'virt-launcher' },
    annotations: { 'k8s.v1.cni.cncf.io/networks': '[]' },
  },
  spec: { containers: [{ name: 'none', image: 'registry.example/none' }] },
};
const pool = {
  apiVersion: 'ipam.holdfast.dev/v1alpha1',
  kind: 'AddressPool',
  metadata,
  spec: { network: 'holdfast-helm-test', subnets: [{ cidr: '192.0.2.0/30' }] },
};

await checkKinds('k8s.cni.cncf.io/v1alpha1', 'IPAMClaim');
await checkConfiguration('mutatingwebhookconfigurations', 'holdfast-webhook');
await checkWebhook('holdfast-webhook', '/api/v1/namespaces/default/pods', launcher);
if (process.env.WITH_IPAM === 'true') {
  await checkKinds('ipam.holdfast.dev/v1alpha1', 'AddressPool', 'AddressLease', 'AddressBlock');
  await checkConfiguration('validatingwebhookconfigurations', 'holdfast-ipam');
  await checkWebhook('holdfast-ipam', '/apis/ipam.holdfast.dev/v1alpha1/addresspools', pool);
}
console.log('The kinds are served, and the webhooks answer.');
