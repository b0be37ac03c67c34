import { generateKeyPair, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import forge from 'node-forge';

const VALID_DAYS = 30;

interface KeyPair {
  readonly privateKey: string;
  readonly publicKey: string;
}

interface Subject {
  readonly name: string;
  readonly group?: string;
}

interface Identity extends KeyPair {
  readonly name: string;
  readonly certificate: string;
}

/** The address of the API server for real nodes, and that of the Service `kubernetes`, for their pods. */
export const API_SERVER_ADDRESSES = ['10.77.0.1', '10.96.0.1'] as const;

/** Files of a PKI. */
export interface Certificates {
  /** PEM of the CA that signed the serving certificate. */
  readonly ca: string;
  /** The CA in base64, for `caBundle` and `certificate-authority-data`. */
  readonly caBundle: string;
  /** Serving certificate of kube-apiserver, virt-api, virt-controller and webhooks, for 127.0.0.1, localhost and their Services. */
  readonly servingCert: string;
  readonly servingKey: string;
  /** Client certificate of kube-apiserver for aggregated API servers, and its CA. */
  readonly frontProxyCa: string;
  readonly frontProxyCert: string;
  readonly frontProxyKey: string;
  /** The identity of kube-apiserver at kubelets. */
  readonly kubeletClientCert: string;
  readonly kubeletClientKey: string;
  /** PEM of a client certificate for a user in a group, and of its key. */
  clientOf(user: string, group: string): { readonly certificate: string; readonly privateKey: string };
  /** File of the CA that signed the serving certificate and those of clients. */
  readonly caFile: string;
  /** Signs and checks service account tokens. */
  readonly serviceAccountKey: string;
  readonly serviceAccountPublicKey: string;
}

/** Made once for all beds of this process, because it takes half a second of CPU time. */
let pki: ReturnType<typeof createPki> | undefined;

/** Writes a PKI into `folder`. */
export async function makeCertificates(folder: string): Promise<Certificates> {
  await mkdir(folder, { recursive: true });
  const { ca, frontCa, serving, front, kubeletClient, presenting, clientOf } = await (pki ??= createPki());
  const save = async (file: string, content: string) => {
    const path = join(folder, file);
    await writeFile(path, content, { mode: 0o600 });
    return path;
  };
  return {
    ca: ca.certificate,
    caFile: await save('ca.crt', ca.certificate),
    clientOf,
    kubeletClientCert: await save('kubelet-client.crt', kubeletClient.certificate),
    kubeletClientKey: await save('kubelet-client.key', kubeletClient.privateKey),
    caBundle: Buffer.from(ca.certificate).toString('base64'),
    servingCert: await save('tls.crt', serving.certificate),
    servingKey: await save('tls.key', serving.privateKey),
    frontProxyCa: await save('front-proxy-ca.crt', frontCa.certificate),
    frontProxyCert: await save('front-proxy.crt', front.certificate),
    frontProxyKey: await save('front-proxy.key', front.privateKey),
    serviceAccountKey: await save('service-account.key', presenting.privateKey),
    serviceAccountPublicKey: await save('service-account.pub', presenting.publicKey),
  };
}

async function createPki() {
  // Two key pairs for five purposes: RSA keys take seconds on a busy machine, and this PKI protects nothing.
  const [signing, presenting] = await Promise.all([makeKeyPair(), makeKeyPair()]);
  const ca = certify({ name: 'bed-ca', keys: signing });
  const frontCa = certify({ name: 'bed-front-proxy-ca', keys: signing });
  const serving = certify({ name: 'bed', keys: presenting, issuer: ca });
  const front = certify({ name: 'front-proxy-client', keys: presenting, issuer: frontCa });
  const clientOf = (name: string, group: string) => certify({ name, group, keys: presenting, issuer: ca });
  const kubeletClient = clientOf('kube-apiserver-kubelet-client', 'system:masters');
  return { ca, frontCa, serving, front, kubeletClient, presenting, clientOf };
}

/** Uses OpenSSL in a thread, because node-forge takes seconds. */
function makeKeyPair(): Promise<KeyPair> {
  return promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  });
}

/** Creates a certificate; without an issuer, a self-signed CA. */
function certify({ name, group, keys, issuer }: Subject & { keys: KeyPair; issuer?: Identity }): Identity {
  const certificate = forge.pki.createCertificate();
  certificate.publicKey = forge.pki.publicKeyFromPem(keys.publicKey);
  certificate.serialNumber = `01${randomBytes(8).toString('hex')}`;
  certificate.validity.notBefore = new Date(Date.now() - 3600_000);
  certificate.validity.notAfter = new Date(Date.now() + VALID_DAYS * 24 * 3600_000);
  // a user of Kubernetes and its group: https://kubernetes.io/docs/reference/access-authn-authz/authentication
  const organization = group === undefined ? [] : [{ name: 'organizationName', value: group }];
  certificate.setSubject([{ name: 'commonName', value: name }, ...organization]);
  certificate.setIssuer([{ name: 'commonName', value: issuer?.name ?? name }]);
  certificate.setExtensions(issuer ? leafExtensions() : caExtensions());
  const signer = forge.pki.privateKeyFromPem(issuer?.privateKey ?? keys.privateKey);
  certificate.sign(signer, forge.md.sha256.create());
  return { ...keys, name, certificate: forge.pki.certificateToPem(certificate) };
}

function caExtensions(): object[] {
  return [
    { name: 'basicConstraints', cA: true, critical: true },
    { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
    { name: 'subjectKeyIdentifier' },
  ];
}

function leafExtensions(): object[] {
  const [dns, ip] = [2, 7]; // GeneralName tags of RFC 5280, 4.2.1.6
  return [
    { name: 'basicConstraints', cA: false },
    { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
    { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
    {
      name: 'subjectAltName',
      altNames: [
        { type: dns, value: 'localhost' },
        { type: dns, value: 'kubernetes.default.svc' },
        { type: dns, value: 'virt-api.kubevirt.svc' },
        ...['127.0.0.1', ...API_SERVER_ADDRESSES].map((address) => ({ type: ip, ip: address })),
      ],
    },
  ];
}
