import { callSubresource } from '../../../bed/story/vm.js';
import { MIGRATIONS } from './kinds.js';
import { rejectUnknownFlags, type Program } from './program.js';

type Verb = 'start' | 'stop' | 'restart';

function subresourceVerb(verb: Verb | 'migrate'): Program {
  return {
    prefix: `virtctl ${verb}`,
    isReadOnly: false,
    isEmulated: () => true,
    parse(args) {
      rejectUnknownFlags(args, []);
      const [name = ''] = args.names;
      return async ({ client, namespace }) => {
        if (verb === 'migrate') await client.create(MIGRATIONS, migrationOf({ namespace, name }));
        else await callSubresource(client, { namespace, name }, verb);
        return `VM ${name} was scheduled to ${verb}`;
      };
    },
  };
}

function migrationOf({ namespace, name }: { namespace: string; name: string }) {
  const metadata = { namespace, generateName: 'kubevirt-migrate-vm-' } as unknown as {
    namespace: string;
    name: string;
  };
  return { metadata, spec: { vmiName: name } };
}

/** Emulates virtctl, which is never installed with the bed. */
export const VIRTCTL: readonly Program[] = (['start', 'stop', 'restart', 'migrate'] as const).map(subresourceVerb);
