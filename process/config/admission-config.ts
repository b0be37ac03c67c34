import {
  type ConfigOf,
  BIND_ADDRESS,
  DIRECTORY_PATH,
  FILE_PATH,
  HTTPS_URL,
  OBJECT_NAME,
  settings,
  textList,
} from './setting.js';

/** How ipam serves reviews of pools and NetworkAttachmentDefinitions. */
export const VALIDATION_SETTINGS = settings({
  validationBindAddress: {
    flag: 'validation-bind-address',
    description: 'address for the validation of pools and NetworkAttachmentDefinitions, over HTTPS',
    defaultValue: ':9444',
    ...BIND_ADDRESS,
  },
  validationCertDir: {
    flag: 'validation-cert-dir',
    description:
      'directory with tls.crt and tls.key; if set, no certificate is created and no webhook configuration is changed',
    defaultValue: undefined,
    defaultText: 'none, ipam creates and renews its own certificate',
    ...DIRECTORY_PATH,
  },
  validationConfiguration: {
    flag: 'validation-configuration',
    description: 'ValidatingWebhookConfiguration whose caBundle is kept up to date',
    defaultValue: 'holdfast-ipam',
    ...OBJECT_NAME,
  },
  validationServiceName: {
    flag: 'validation-service-name',
    description: 'Service of the validation webhook, whose name is in its certificate',
    defaultValue: 'holdfast-ipam',
    ...OBJECT_NAME,
  },
  validationUrl: {
    flag: 'validation-url',
    description: 'URL of the validation webhook if the API server does not use the Service',
    defaultValue: undefined,
    defaultText: 'none, the Service is used',
    ...HTTPS_URL,
  },
});

/** The clients that an admission server answers. */
export const CLIENT_SETTINGS = settings({
  clientCaFile: {
    flag: 'client-ca-file',
    description: 'file with CA certificates: only clients with a certificate that one of them signed are answered',
    defaultValue: undefined,
    defaultText: 'none, all clients are answered',
    ...FILE_PATH,
  },
  clientAllowedNames: {
    flag: 'client-allowed-names',
    placeholder: 'name,...',
    description: 'allowed common names of client certificates; needs --client-ca-file',
    defaultValue: Object.freeze([]),
    defaultText: 'all',
    parse: textList('names'),
  },
});
export type ClientConfig = ConfigOf<typeof CLIENT_SETTINGS>;

/** @returns why the values cannot be combined; undefined if they can */
export function findClientConfigProblem({
  clientCaFile,
  clientAllowedNames = [],
}: Partial<ClientConfig>): string | undefined {
  if (clientCaFile !== undefined || clientAllowedNames.length === 0) return undefined;
  const { clientCaFile: file, clientAllowedNames: names } = CLIENT_SETTINGS;
  return `--${names.flag} has no effect without --${file.flag}: set it to the file with the CA of the client certificates`;
}

/** How the webhook serves VMs on primary user-defined networks. */
export const PRIMARY_NETWORK_SETTINGS = settings({
  defaultNetworkNadNamespace: {
    flag: 'default-network-nad-namespace',
    description:
      "namespace of OVN-Kubernetes' NetworkAttachmentDefinition default, which requests for addresses on primary user-defined networks name",
    defaultValue: 'ovn-kubernetes',
    ...OBJECT_NAME,
  },
});
