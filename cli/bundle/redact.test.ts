import { expect } from 'chai';
import fc from 'fast-check';
import { REDACTED, redactObject, redactText } from './redact.js';

const KEY = '-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----';
const CERTIFICATE = '-----BEGIN CERTIFICATE-----\nMIIB==\n-----END CERTIFICATE-----';
const TOKEN = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl';
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('the redaction of a bundle', () => {
  const texts: { name: string; given: string; expect: string }[] = [
    { name: 'a private key', given: `a ${KEY} b`, expect: `a ${REDACTED} b` },
    { name: 'a private key that is cut off', given: `a ${KEY.slice(0, 45)}`, expect: `a ${REDACTED}` },
    { name: 'the end of a private key', given: `${KEY.slice(35)} b ${KEY}`, expect: `${REDACTED} b ${REDACTED}` },
    { name: 'a private key in base64', given: `key ${base64(KEY)}`, expect: `key ${REDACTED}` },
    { name: 'a bearer token', given: 'curl -H "X: Bearer abcdef123"', expect: `curl -H "X: Bearer ${REDACTED}"` },
    { name: 'a JSON web token', given: `jwt ${TOKEN}.`, expect: `jwt ${REDACTED}.` },
    { name: 'credentials in a URL', given: 'http://joe:pw@proxy:3128/', expect: `http://${REDACTED}@proxy:3128/` },
    { name: 'a flag', given: '--client-secret=abc -v', expect: `--client-secret=${REDACTED} -v` },
    { name: 'a field of JSON', given: '{"password":"a \\" b","n":1}', expect: `{"password":"${REDACTED}","n":1}` },
    {
      name: 'a field of JSON in a log line',
      given: '{"msg":"{\\"token\\":\\"abc\\"}"}',
      expect: `{"msg":"{\\"token\\":\\"${REDACTED}\\"}"}`,
    },
    {
      name: 'nothing of a certificate',
      given: `${CERTIFICATE} ${base64(CERTIFICATE)}`,
      expect: `${CERTIFICATE} ${base64(CERTIFICATE)}`,
    },
    {
      name: 'nothing of names of Secrets and files',
      given: '--token-file=/run/token secretName: holdfast-tls',
      expect: '--token-file=/run/token secretName: holdfast-tls',
    },
    {
      name: 'nothing of an ordinary message',
      given: 'Pool blue is full for IPv4: 254 of 254 leased',
      expect: 'Pool blue is full for IPv4: 254 of 254 leased',
    },
  ];
  for (const { name, given, expect: expected } of texts) {
    it(`removes ${name} from text`, () => expect(redactText(given)).to.equal(expected));
  }

  const objects: { name: string; given: unknown; expect: unknown }[] = [
    {
      name: 'values of environment variables, and keeps references',
      given: {
        env: [
          { name: 'A', value: 'x' },
          { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        ],
      },
      expect: {
        env: [
          { name: 'A', value: REDACTED },
          { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
        ],
      },
    },
    {
      name: 'credentials in arguments',
      given: { args: ['--password', 'x', '--token=y', '--token-file', '/run/token'], command: ['run', '-secret', 'z'] },
      expect: {
        args: ['--password', REDACTED, `--token=${REDACTED}`, '--token-file', '/run/token'],
        command: ['run', '-secret', REDACTED],
      },
    },
    {
      name: 'guest data',
      given: { cloudInitNoCloud: { userData: '#cloud-config', networkDataBase64: 'eA==', secretRef: { name: 's' } } },
      expect: { cloudInitNoCloud: { userData: REDACTED, networkDataBase64: REDACTED, secretRef: { name: 's' } } },
    },
    {
      name: 'the copies of kubectl and of the API server',
      given: {
        metadata: {
          annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', a: 'b' },
          managedFields: [{}],
        },
      },
      expect: { metadata: { annotations: { a: 'b' } } },
    },
    {
      name: 'fields that are named after credentials',
      given: { apiKey: 'x', n: 1 },
      expect: { apiKey: REDACTED, n: 1 },
    },
  ];
  for (const { name, given, expect: expected } of objects) {
    it(`removes ${name} from objects`, () => expect(redactObject(given)).to.deep.equal(expected));
  }

  it('finds a secret in any object, and changes nothing in a second run', () => {
    const secret = fc.stringMatching(/^[a-z0-9]{24}$/);
    const carriers = (value: string): unknown[] => [
      { env: [{ name: 'A', value }] },
      { args: ['--password', value] },
      { args: [`--api-key=${value}`] },
      { volumes: [{ cloudInitConfigDrive: { userData: `password: ${value}` } }] },
      { message: `Authorization: Bearer ${value}` },
      { config: JSON.stringify({ type: 'bridge', token: value }) },
      { 'client-secret': value },
      { log: JSON.stringify({ msg: JSON.stringify({ password: value }) }) },
      `-----BEGIN EC PRIVATE KEY-----\n${value}\n-----END EC PRIVATE KEY-----`,
      `ssh://user:${value}@host`,
    ];
    fc.assert(
      fc.property(secret, fc.nat(9), fc.array(fc.string({ maxLength: 12 }), { maxLength: 5 }), (value, index, path) => {
        const object = path.reduce<unknown>((inner, key) => ({ [key]: [inner] }), carriers(value)[index]);
        const redacted = redactObject(object);
        expect(JSON.stringify(redacted)).not.to.include(value);
        expect(redactObject(redacted)).to.deep.equal(redacted);
      }),
    );
  });

  it('needs a time in proportion to the length of the text, also for hostile texts', function () {
    this.timeout(20_000);
    for (const part of [
      'token="',
      '-eyJaaaaaa',
      '-----BEGIN PRIVATE KEY-----',
      'password\\',
      "secret='",
      'a://',
      'Bearer ',
    ]) {
      redactText(part.repeat(500_000 / part.length));
    }
  });
});
