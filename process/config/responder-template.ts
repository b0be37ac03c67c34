import { describeValue, isRecord } from '../../api/json.js';

/** What an administrator adds to the pods of responders. They have no manifest, because `guest` makes a StatefulSet for each pool. */
export interface ResponderTemplate {
  /** Of the container `table`, added to its defaults. */
  readonly resources?: Resources;
  /** Of the container `packets`, added to its defaults. */
  readonly packetsResources?: Resources;
  readonly tolerations?: readonly object[];
  readonly nodeSelector?: Texts;
  readonly priorityClassName?: string;
  readonly podAnnotations?: Texts;
  readonly podLabels?: Texts;
}

export interface Resources {
  readonly requests?: Readonly<Record<string, string | number>>;
  readonly limits?: Readonly<Record<string, string | number>>;
}

type Texts = Readonly<Record<string, string>>;

/** Throws a TypeError that begins with the path of the value. */
type Check = (path: string, value: unknown) => void;

/** Holdfast and Multus read these keys of the pods. */
const RESERVED =
  /^(app\.kubernetes\.io\/(name|component)|ipam\.holdfast\.dev\/.*|k8s\.v1\.cni\.cncf\.io\/.*|v1\.multus-cni\.io\/.*)$/;

/** Names the template itself in messages: its path is empty. */
const ROOT = 'the template';

const text: Check = (path, value) => {
  if (typeof value !== 'string') throw new TypeError(`${path} must be a string, and is ${describeValue(value)}`);
};

const texts = mapOf(text);

const quantities = mapOf((path, value) => {
  if (typeof value !== 'string' && typeof value !== 'number')
    throw new TypeError(`${path} must be a quantity such as 100m or 1Gi, and is ${describeValue(value)}`);
});

const wholeNumber: Check = (path, value) => {
  if (!Number.isInteger(value)) throw new TypeError(`${path} must be a whole number, and is ${describeValue(value)}`);
};

const resources = fields({ requests: quantities, limits: quantities });
const toleration = fields({ key: text, operator: text, value: text, effect: text, tolerationSeconds: wholeNumber });

const metadata: Check = (path, value) => {
  texts(path, value);
  const reserved = Object.keys(value as Texts).find((key) => RESERVED.test(key));
  if (reserved !== undefined) throw new TypeError(`${path} must not have ${reserved}, which Holdfast sets`);
};

const template = fields({
  resources,
  packetsResources: resources,
  tolerations: (path, value) => {
    if (!Array.isArray(value)) throw new TypeError(`${path} must be a list, and is ${describeValue(value)}`);
    value.forEach((each, index) => toleration(`${path}[${index}]`, each));
  },
  nodeSelector: texts,
  priorityClassName: text,
  podAnnotations: metadata,
  podLabels: metadata,
} satisfies Record<keyof ResponderTemplate, Check>);

/** Reads the JSON of a template. @throws {TypeError} that names the field */
export function parseResponderTemplate(json: string): ResponderTemplate {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new TypeError('must be a JSON object such as {"priorityClassName": "network"}');
  }
  template('', value);
  return value as ResponderTemplate;
}

function fields(checks: Readonly<Record<string, Check>>): Check {
  return (path, value) => {
    if (!isRecord(value)) throw new TypeError(`${path || ROOT} must be an object, and is ${describeValue(value)}`);
    for (const [key, each] of Object.entries(value)) {
      const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
      if (check === undefined)
        throw new TypeError(
          `${path || ROOT} has no field ${describeValue(key)}, only ${Object.keys(checks).join(', ')}`,
        );
      check(join(path, key), each);
    }
  };
}

function mapOf(check: Check): Check {
  return (path, value) => {
    if (!isRecord(value)) throw new TypeError(`${path} must be an object, and is ${describeValue(value)}`);
    for (const [key, each] of Object.entries(value)) check(join(path, key), each);
  };
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
