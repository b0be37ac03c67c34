import { Agent, request } from 'undici';
import { CLAIM_REFERENCE_KEY, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';

export interface ReviewAnswer {
  uid: string;
  allowed: boolean;
  /** Base64 of a JSON patch. */
  patch?: string;
  status?: { message?: string };
}

/** Metadata with the fields that the API server adds. */
type Stored = Pod['metadata'] & { managedFields?: unknown };

/** The admission review that the API server sends when virt-controller creates a launcher pod. */
export function creationReview(launcher: Pod, uid: string): object {
  const { status: _status, ...created } = launcher;
  const { uid: _uid, resourceVersion: _version, managedFields: _managed, ...metadata } = launcher.metadata as Stored;
  const annotations = { ...metadata.annotations, [NETWORKS_ANNOTATION]: withoutReferences(launcher) };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid,
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      namespace: metadata.namespace,
      operation: 'CREATE',
      userInfo: { username: 'system:serviceaccount:kubevirt:kubevirt-controller' },
      object: { ...created, apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, annotations } },
    },
  };
}

function withoutReferences(launcher: Pod): string {
  const value = launcher.metadata.annotations?.[NETWORKS_ANNOTATION] ?? '[]';
  const elements = JSON.parse(value) as Record<string, unknown>[];
  return JSON.stringify(elements.map(({ [CLAIM_REFERENCE_KEY]: _reference, ...element }) => element));
}

/** Sends one review directly to a webhook on this machine. */
export async function sendReview(
  port: number,
  review: object,
  agent: Agent,
  signal?: AbortSignal,
): Promise<ReviewAnswer> {
  const answer = await request(`https://127.0.0.1:${String(port)}/mutate-launcher-pods`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(review),
    dispatcher: agent,
    signal,
  });
  if (answer.statusCode !== 200) throw new Error(`${String(answer.statusCode)} ${await answer.body.text()}`);
  return ((await answer.body.json()) as { response: ReviewAnswer }).response;
}

/** Connections to a webhook whose certificate is for its Service's name. */
export function reviewAgent(connections: number): Agent {
  return new Agent({ connections, connect: { rejectUnauthorized: false } });
}
