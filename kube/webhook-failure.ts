import { StatusError, messageOf } from './errors.js';

/** The API server's text if it cannot reach an admission webhook whose failures reject requests. */
const FAILURE = /failed calling webhook "([^"]{1,253})": ([^]*)/;
/** Holdfast's webhooks of IPAM; the process `webhook` serves the others. */
const IPAM_WEBHOOKS = ['pools.ipam.holdfast.dev', 'network-attachment-definitions.ipam.holdfast.dev'];

/**
 * Returns what to tell people if the API server rejected a request because an admission webhook does not answer: whose webhook it is, why, and
 * what to do. Undefined for all other errors.
 */
export function webhookFailureOf(error: unknown): string | undefined {
  const [, name, rest = ''] = (error instanceof StatusError && FAILURE.exec(error.message)) || [];
  if (name === undefined) return undefined;
  // the end of a chain of Go errors is the cause
  const cause = rest.split(': ').at(-1)?.slice(0, 200) ?? '';
  const subject = `admission webhook ${name}`;
  if (!name.endsWith('.ipam.holdfast.dev')) {
    return `${subject}, which is not Holdfast's, does not answer (${cause}): find its pods in the ValidatingWebhookConfiguration or MutatingWebhookConfiguration that names it, and repair them`;
  }
  const server = IPAM_WEBHOOKS.includes(name) ? 'ipam' : 'webhook';
  return `${subject} of Holdfast's ${server} does not answer (${cause}): check that one of its pods is ready, with kubectl get pods -A -l app.kubernetes.io/name=holdfast`;
}

/** Returns the message of a failed write for people. */
export function writeFailureOf(error: unknown): string {
  return webhookFailureOf(error) ?? messageOf(error);
}
