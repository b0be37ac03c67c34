import { requestToken, SERVICE_ACCOUNTS, type TokenBinding } from '../../control-plane/service-accounts.js';
import { Client } from '../../../kube/client.js';
import { type Credentials, loadCredentials } from '../../../kube/transport/credentials.js';
import { Transport } from '../../../kube/transport/transport.js';

/** Creates a service account and a client that acts as it. The caller closes the client's transport. */
export async function serviceAccountClient(
  admin: { client: Client; kubeconfig: string },
  account: { namespace: string; name: string },
): Promise<Client> {
  await admin.client.create(SERVICE_ACCOUNTS, { metadata: account });
  return clientAs(admin, account);
}

/** A client that acts as an existing service account. The caller closes the client's transport. */
export async function clientAs(
  admin: { client: Client; kubeconfig: string },
  account: { namespace: string; name: string },
  binding?: TokenBinding,
): Promise<Client> {
  const token = await requestToken(admin.client, account, binding);
  const cluster = await loadCredentials({ kubeconfig: admin.kubeconfig });
  const credentials: Credentials = {
    server: cluster.server,
    // the administrator's client certificate would take precedence over the token
    tls: async () => {
      const { cert: _cert, key: _key, ...tls } = await cluster.tls();
      return tls;
    },
    headers: () => Promise.resolve({ authorization: `Bearer ${token}` }),
    refresh: () => Promise.resolve(),
  };
  return new Client(new Transport(credentials));
}
