import { type Settings, parseBindText, parseHttpsUrl, parseObjectName, parseText } from './setting.js';

/** How ipam serves reviews of pools and NetworkAttachmentDefinitions. */
export interface ValidationServerConfig {
  readonly validationBindAddress: string;
  /** Directory with tls.crt and tls.key that another program renews. Absent: ipam creates its own certificate. */
  readonly validationCertDir?: string | undefined;
  /** The ValidatingWebhookConfiguration whose caBundle is kept up to date. */
  readonly validationConfiguration: string;
  /** The Service of the webhook, whose name is in the certificate. */
  readonly validationServiceName: string;
  /** URL of the webhook if API servers do not use the Service; its host is in the certificate. */
  readonly validationUrl?: string | undefined;
}

export const VALIDATION_SETTINGS: Settings<ValidationServerConfig> = {
  validationBindAddress: {
    flag: 'validation-bind-address',
    placeholder: 'host:port',
    description: 'address for the validation of pools and NetworkAttachmentDefinitions, over HTTPS',
    defaultValue: ':9444',
    parse: parseBindText,
  },
  validationCertDir: {
    flag: 'validation-cert-dir',
    placeholder: 'directory',
    description:
      'directory with tls.crt and tls.key; if set, no certificate is created and no webhook configuration is changed',
    defaultValue: undefined,
    defaultText: 'none, ipam creates and renews its own certificate',
    parse: parseText,
  },
  validationConfiguration: {
    flag: 'validation-configuration',
    placeholder: 'name',
    description: 'ValidatingWebhookConfiguration whose caBundle is kept up to date',
    defaultValue: 'holdfast-ipam',
    parse: parseObjectName,
  },
  validationServiceName: {
    flag: 'validation-service-name',
    placeholder: 'name',
    description: 'Service of the validation webhook, whose name is in its certificate',
    defaultValue: 'holdfast-ipam',
    parse: parseObjectName,
  },
  validationUrl: {
    flag: 'validation-url',
    placeholder: 'url',
    description: 'URL of the validation webhook if the API server does not use the Service',
    defaultValue: undefined,
    defaultText: 'none, the Service is used',
    parse: parseHttpsUrl,
  },
};
